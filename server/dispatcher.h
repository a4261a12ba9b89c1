// SPDX-License-Identifier: Apache-2.0
// Brings jobs and workers together: parks idle workers' polls, leases jobs to them by fair share,
// ends leases that the clock ends. Thread-safe; knows no gRPC and no timer: whoever owns it calls
// Sweep, often (ten times a second), since a sweep is also the net for a notification that was
// missed.
//
// Poll, JobQueued and Sweep write to the store: call them from the work pool.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/clock.h"
#include "server/counters.h"
#include "server/job_table.h"
#include "server/roster.h"

namespace kiln::server {

class Dispatcher {
 public:
  // A lease, or nothing: ask again. Returns false if the worker is gone (its call was cancelled):
  // the lease is taken back.
  using Answer = std::function<bool(absl::StatusOr<std::optional<JobTable::Leased>>)>;

  Dispatcher(JobTable* jobs, Roster* roster, const Clock* clock, Counters* counters);

  // Answers with a job for the worker's device, now or within `wait`. A second poll of a worker
  // ends the first; one of a worker that holds a lease receives it again. NOT_FOUND
  // (WORKER_UNKNOWN). Returns a number for Forget; 0 if it was answered at once.
  int64_t Poll(const std::string& worker, absl::Duration wait, Answer answer);
  // The call of a poll is gone: it is not served any more.
  void Forget(const std::string& worker, int64_t poll);

  // Something waits that did not before.
  void JobQueued();
  // Expired leases, unserved jobs, polls whose time is up, missed notifications.
  void Sweep();
  // Answers all parked polls with `status` and takes no more.
  void Drain(const absl::Status& status);

 private:
  struct Parked {
    int64_t id = 0;
    std::string device;
    absl::Time until;
    Answer answer;
  };
  // Tries each parked worker once; returns the number of leases given.
  int Serve();
  bool Give(const std::string& worker, const std::string& device, const Answer& answer);
  std::optional<Parked> Unpark(const std::string& worker, int64_t id);

  JobTable* const jobs_;
  Roster* const roster_;
  const Clock* const clock_;
  Counters* const counters_;
  const absl::Time started_;
  mutable std::mutex mutex_;
  std::map<std::string, Parked> parked_;  // by worker
  int64_t last_poll_ = 0;
  absl::Status drained_;
  std::mutex sweep_mutex_;
  absl::Time last_checkpoint_;  // of sweeps alone
};

}  // namespace kiln::server
