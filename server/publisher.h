// SPDX-License-Identifier: Apache-2.0
// Ends jobs: checks what the worker brings, decides on publication, writes both in one transaction,
// reads it back, and only then are the waiting told. Thread-safe; waits for the store.
#pragma once

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "db/store.h"
#include "server/clock.h"
#include "server/counters.h"
#include "server/job_table.h"
#include "server/lookup.h"

namespace kiln::server {

// How a worker says that a job ended: exactly one of them.
struct Conclusion {
  std::optional<Record> record;
  std::string keep;  // id: the incumbent stands
  absl::Status failure;
};

class Publisher {
 public:
  Publisher(db::Store* store, JobTable* jobs, Lookup* lookup, const Clock* clock,
            Counters* counters)
      : store_(store), jobs_(jobs), lookup_(lookup), clock_(clock), counters_(counters) {}

  // Returns the id of the record that answers the key now, "" after a failure. ABORTED (LEASE_LOST)
  // from an old lease, but a repeat of what ended the job gives its answer again. INVALID_ARGUMENT
  // (RECORD_REFUSED) as CheckRecord; FAILED_PRECONDITION (ARTIFACT_MISSING, NOT_THE_INCUMBENT);
  // UNAVAILABLE: the store failed, the job goes on, try again.
  absl::StatusOr<std::string> Conclude(const std::string& job, const std::string& worker,
                                       int64_t epoch, Conclusion conclusion);

 private:
  absl::StatusOr<std::string> End(const std::string& job, const std::string& worker, int64_t epoch,
                                  Conclusion conclusion);
  absl::StatusOr<std::string> Repeated(const std::string& job, int64_t epoch,
                                       const absl::Status& lost);
  absl::StatusOr<std::string> Keep(const Job& job, const std::string& worker,
                                   const std::string& record);
  absl::StatusOr<std::string> Store(const Job& job, const std::string& worker, Record record);
  absl::StatusOr<std::string> AnswerOf(const Job& job);

  db::Store* const store_;
  JobTable* const jobs_;
  Lookup* const lookup_;
  const Clock* const clock_;
  Counters* const counters_;
};

}  // namespace kiln::server
