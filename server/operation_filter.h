// SPDX-License-Identifier: Apache-2.0
// ListOperations.filter, the part of AIP-160 that is built: terms joined by AND,
//   done = true    client = "alice"    job = "jobs/0123456789abcdef"    state = running
// Pure.
#pragma once

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "proto/contract/job.h"

namespace kiln::server {

struct OperationFilter {
  std::optional<bool> done;
  std::optional<std::string> client, job;
  std::optional<JobState> state;
};

// Empty: all. INVALID_ARGUMENT (BAD_FILTER) names the term and what is allowed.
absl::StatusOr<OperationFilter> ParseOperationFilter(absl::string_view text);
bool Matches(const OperationFilter& filter, const Operation& operation, const Job& job);

}  // namespace kiln::server
