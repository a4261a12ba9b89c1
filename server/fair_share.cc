// SPDX-License-Identifier: Apache-2.0
#include "server/fair_share.h"

#include <cmath>

namespace kiln::server {

double Score(const Waiting& job, const Executing& executing) {
  const auto it = executing.find(job.client);
  const int running = it == executing.end() ? 0 : it->second;
  return (running + 1) * std::exp2(job.priority / 100.0);
}

bool RunsBefore(const Waiting& a, const Waiting& b, const Executing& executing) {
  const double score_a = Score(a, executing), score_b = Score(b, executing);
  if (score_a != score_b) return score_a < score_b;
  if (a.priority != b.priority) return a.priority < b.priority;
  if (a.created != b.created) return a.created < b.created;
  return a.name < b.name;
}

int PickNext(const std::vector<Waiting>& jobs, const Executing& executing) {
  int best = -1;
  for (int i = 0; i < static_cast<int>(jobs.size()); ++i) {
    if (best < 0 || RunsBefore(jobs[i], jobs[best], executing)) best = i;
  }
  return best;
}

}  // namespace kiln::server
