// SPDX-License-Identifier: Apache-2.0
// Operations as rows.
#pragma once

#include <optional>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "db/shared_rows.h"
#include "proto/contract/job.h"

namespace kiln::db {

// --- within a write ---
// Inserts and names it. `operation.job` exists. ALREADY_EXISTS (detail "operation"): the client has
// used its request_id.
absl::Status InsertOperation(Connection& connection, int64_t id, Operation* operation);
absl::Status SetCancelled(Connection& connection, absl::string_view name);     // NOT_FOUND
absl::Status RemoveOperation(Connection& connection, absl::string_view name);  // NOT_FOUND

// --- reads ---
absl::StatusOr<Operation> SelectOperation(Connection& connection,
                                          absl::string_view name);  // NOT_FOUND
absl::StatusOr<std::optional<Operation>> SelectRequest(Connection& connection,
                                                       absl::string_view client,
                                                       absl::string_view request_id);
absl::StatusOr<PageOf<Operation>> SelectOperations(Connection& connection,
                                                   const PageWindow& window);

}  // namespace kiln::db
