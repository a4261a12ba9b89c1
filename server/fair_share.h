// SPDX-License-Identifier: Apache-2.0
// Which of the waiting jobs runs next: Buildbarn's score, (executing + 1) * 2^(priority / 100) of
// the client, lowest first; then the smaller priority; then the older job. Pure.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "absl/time/time.h"

namespace kiln::server {

struct Waiting {
  std::string name, client;
  int priority = 0;  // smaller runs earlier; 100 more halves the share
  absl::Time created;
};

// Jobs of each client that run now.
using Executing = std::map<std::string, int>;

double Score(const Waiting& job, const Executing& executing);
bool RunsBefore(const Waiting& a, const Waiting& b, const Executing& executing);

// Index of the job to run next; -1 if there is none.
int PickNext(const std::vector<Waiting>& jobs, const Executing& executing);

}  // namespace kiln::server
