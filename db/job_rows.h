// SPDX-License-Identifier: Apache-2.0
// Jobs as rows.
#pragma once

#include <optional>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "db/shared_rows.h"
#include "proto/contract/job.h"

namespace kiln::db {

// --- within a write ---
// The key's live job, by its row. One that is damaged is ended where it stands (as failed), or it
// would block its key for ever: it is reported, and what it held stays readable in its row.
absl::StatusOr<std::optional<int64_t>> FindLiveJobRow(Connection& connection, const Key& key,
                                                      Reading reading);
absl::Status InsertJob(Connection& connection, const Job& job, int64_t id, Reading reading);
// The stored job, if it is live and has that epoch and state. ABORTED, NOT_FOUND, DATA_LOSS.
absl::StatusOr<Job> SelectExpectedJob(Connection& connection, absl::string_view name,
                                      int64_t expected_epoch, JobState expected_state,
                                      Reading reading);
// Writes what may change of `job`; what may not is taken from `stored`.
absl::Status ReplaceJob(Connection& connection, Job job, const Job& stored);

// --- reads ---
absl::StatusOr<std::optional<Job>> SelectLiveJob(Connection& connection, const Key& key,
                                                 Reading reading);
// NOT_FOUND, DATA_LOSS.
absl::StatusOr<Job> SelectJob(Connection& connection, absl::string_view name, Reading reading);
absl::StatusOr<PageOf<Job>> SelectJobs(Connection& connection, bool live_only,
                                       const PageWindow& window, Reading reading);

}  // namespace kiln::db
