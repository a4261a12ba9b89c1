// SPDX-License-Identifier: Apache-2.0
// The learning set as rows.
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "db/shared_rows.h"
#include "proto/contract/outcome.h"

namespace kiln::db {

// Within a write; those that are stored already are left out. NOT_FOUND: no such job.
absl::Status InsertOutcomes(Connection& connection, absl::string_view job, int64_t epoch,
                            const std::vector<Outcome>& outcomes);

// Newest first. Damaged rows are reported and left out.
absl::StatusOr<std::vector<Outcome>> SelectOutcomes(Connection& connection, const Key& key,
                                                    int limit, Reading reading);
absl::StatusOr<std::vector<Blocked>> SelectBlocked(Connection& connection, const Key& key,
                                                   Reading reading);

}  // namespace kiln::db
