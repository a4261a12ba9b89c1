// SPDX-License-Identifier: Apache-2.0
// The steps of a job's life, as pure functions on the plain value: JobTable decides when, persists
// and tells.
//
//   queued --BeginLease--> running --Succeed/Fail/Cancel--> ended
//     ^------ReturnToQueue/LoseWorker----'
//
// Steps are deterministic (time is an argument), so that one can be tried on a copy, persisted, and
// applied.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "proto/contract/job.h"

namespace kiln::server {

// Queued -> running under a new epoch.
void BeginLease(const std::string& worker, absl::Time now, Job* job);
// Counts time under the present lease.
void CountLeased(double seconds, Job* job);
// Running -> queued; no attempt (the worker drains).
void ReturnToQueue(Job* job);
// Running -> queued with one attempt more; -> failed at `max_losses`, with every loss in the
// message.
void LoseWorker(const std::string& why, int max_losses, absl::Time now, Job* job);

void Succeed(const std::string& record, absl::Time now, Job* job);
void Fail(const absl::Status& error, absl::Time now, Job* job);
void Cancel(absl::Time now, Job* job);

// A joiner brings the larger budget, the longer patience and the smaller priority. Returns whether
// the job changed.
bool RaiseBudget(const Budget& budget, int priority, Job* job);

// What a lease that begins now may use; at least one trial.
Budget BudgetLeft(const Job& job);
// Outcomes so far, of all leases.
int64_t TrialsDone(const Job& job);

// A worker counts from its own lease; callers see numbers that never fall. `done_before`:
// TrialsDone when the lease began.
Progress MergeProgress(const Progress& before, const Progress& reported, int64_t done_before,
                       absl::Time now);

// How a job ended, for those who wait: OK, or the error with reason and histogram. INTERNAL if it
// has not ended.
absl::Status ResultOf(const Job& job);

}  // namespace kiln::server
