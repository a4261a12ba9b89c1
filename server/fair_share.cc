// SPDX-License-Identifier: Apache-2.0
#include "server/fair_share.h"

#include <cmath>

namespace kiln::server {

double Score(const std::string& client, int priority, const Executing& executing) {
  const auto it = executing.find(client);
  const int running = it == executing.end() ? 0 : it->second;
  return (running + 1) * (priority == 0 ? 1.0 : std::exp2(priority / 100.0));
}

Turn TurnOf(const Job& job, const Executing& executing) {
  return {Score(job.client, job.priority, executing), job.priority, job.created, job.name};
}

bool operator<(const Turn& a, const Turn& b) {
  if (a.score != b.score) return a.score < b.score;
  if (a.priority != b.priority) return a.priority < b.priority;
  if (a.created != b.created) return a.created < b.created;
  return a.name < b.name;
}

}  // namespace kiln::server
