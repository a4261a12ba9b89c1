// SPDX-License-Identifier: Apache-2.0
// The books of one job: what of its budget is used, what became of its candidates, and its
// progress, told to the reporter as it changes. One thread.
#pragma once

#include <map>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "worker/compile/cancel.h"
#include "worker/job.h"

namespace kiln::worker {

class Ledger {
 public:
  // Time counts from here. `reporter` and `cancel` outlive it.
  Ledger(const JobLease& lease, JobReporter* reporter, const CancelToken& cancel);

  void Enter(const std::string& phase);
  // Schedules that there are to be tried, shown as the total if the budget has more trials; 0:
  // many.
  void set_space(int64_t schedules) { space_ = schedules; }
  // Kept for the finalists: the search ends so much earlier.
  void set_reserve(absl::Duration reserve) { reserve_ = reserve; }

  // Whether one more candidate may be tried: budget is left, or none has been tried yet.
  bool MayTry();
  // How many to prepare at once, so that the time left is enough for them; at least 1.
  int BatchSize(int most);
  absl::Duration TimeLeft();  // of the whole budget; not below 0
  bool ended_by_budget() const { return ended_by_budget_; }

  // Numbers, counts and reports it. `trial` false: a candidate that was counted before, or the
  // vendor's library.
  void Record(Outcome outcome, bool trial = true);
  double best_ns() const { return progress_.best_ns; }
  const std::map<std::string, int64_t>& histogram() const { return histogram_; }
  const Progress& progress() const { return progress_; }

  // FAILED_PRECONDITION (ALL_CANDIDATES_FAILED): how many at which stage, and the first compiler
  // message.
  absl::Status NothingWorked() const;

 private:
  void Tell();

  JobReporter* reporter_;
  const CancelToken& cancel_;
  absl::Time start_, search_start_;
  absl::Duration reserve_ = absl::Seconds(1);
  int64_t space_ = 0;
  int sequence_;
  bool ended_by_budget_ = false;
  Progress progress_;
  std::map<std::string, int64_t> histogram_;
  std::string compiler_message_, other_message_;
};

}  // namespace kiln::worker
