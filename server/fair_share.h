// SPDX-License-Identifier: Apache-2.0
// Which of the waiting jobs runs next: Buildbarn's score, (executing + 1) * 2^(priority / 100) of
// the client, lowest first; then the smaller priority; then the older job. Pure.
#pragma once

#include <map>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "proto/contract/job.h"

namespace kiln::server {

// Jobs of each client that run now.
using Executing = std::map<std::string, int>;

double Score(const std::string& client, int priority, const Executing& executing);

// A job's place in the order of service; the least one runs next.
struct Turn {
  double score = 0;
  int priority = 0;  // smaller runs earlier; 100 more halves the client's share
  absl::Time created;
  absl::string_view name;  // of the job, which outlives it
};
Turn TurnOf(const Job& job, const Executing& executing);
bool operator<(const Turn& a, const Turn& b);

}  // namespace kiln::server
