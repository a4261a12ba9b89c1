// SPDX-License-Identifier: Apache-2.0
#include "server/job_steps.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "proto/contract/error.h"

namespace kiln::server {
namespace {

void End(JobState state, absl::Time now, Job* job) {
  job->state = state;
  job->ended = now;
  job->worker.clear();
  job->progress.queue_position = 0;
  job->progress.seconds_left = 0;
  job->progress.phase = "done";
  // The worker's last heartbeat is older than its last outcome.
  job->progress.done = std::max(job->progress.done, TrialsDone(*job));
  job->progress.changed = now;
}

}  // namespace

void BeginLease(const std::string& worker, absl::Time now, Job* job) {
  job->state = JobState::kRunning;
  job->worker = worker;
  ++job->lease_epoch;
  if (job->started == absl::Time()) job->started = now;
  job->progress.phase = "analysing";
  job->progress.queue_position = 0;
  job->progress.changed = now;
}

void CountLeased(double seconds, Job* job) { job->leased_seconds += std::max(seconds, 0.0); }

void ReturnToQueue(Job* job) {
  job->state = JobState::kQueued;
  job->worker.clear();
  job->progress.phase = "queued";
}

void LoseWorker(const std::string& why, int max_losses, absl::Time now, Job* job) {
  ++job->attempts;
  std::string loss = absl::StrCat(job->worker, ": ", why);
  if (!job->progress.phase.empty()) absl::StrAppend(&loss, ", in ", job->progress.phase);
  if (!job->progress.best_schedule.empty())
    absl::StrAppend(&loss, ", best so far ", job->progress.best_schedule);
  job->losses.push_back(std::move(loss));
  ReturnToQueue(job);
  if (job->attempts < max_losses) return;
  Fail(MakeError(absl::StatusCode::kInternal,
                 absl::StrCat(job->attempts, " workers were lost with the job: ",
                              absl::StrJoin(job->losses, "; ")),
                 {"WORKERS_LOST", {{"attempts", absl::StrCat(job->attempts)}}}),
       now, job);
}

void Succeed(const std::string& record, absl::Time now, Job* job) {
  job->record = record;
  End(JobState::kSucceeded, now, job);
}

void Fail(const absl::Status& error, absl::Time now, Job* job) {
  job->error_code = static_cast<int>(error.code());
  job->error_reason = GetErrorInfo(error).reason;
  job->error_message = std::string(error.message());
  End(JobState::kFailed, now, job);
}

void Cancel(absl::Time now, Job* job) { End(JobState::kCancelled, now, job); }

bool RaiseBudget(const Budget& budget, int priority, Job* job) {
  Budget raised = job->budget;
  raised.trials = std::max(raised.trials, budget.trials);
  raised.seconds = std::max(raised.seconds, budget.seconds);
  raised.wait_worker_seconds = std::max(raised.wait_worker_seconds, budget.wait_worker_seconds);
  if (raised == job->budget && priority >= job->priority) return false;
  job->budget = raised;
  job->priority = std::min(job->priority, priority);
  return true;
}

int64_t TrialsDone(const Job& job) {
  int64_t done = 0;
  for (const auto& [stage, count] : job.histogram) done += count;
  return done;
}

Budget BudgetLeft(const Job& job) {
  Budget left = job.budget;
  left.trials = std::max<int64_t>(1, left.trials - TrialsDone(job));
  left.seconds = std::max(0.0, left.seconds - job.leased_seconds);
  return left;
}

Progress MergeProgress(const Progress& before, const Progress& reported, int64_t done_before,
                       absl::Time now) {
  Progress merged = reported;
  merged.queue_position = 0;
  merged.done = std::max(before.done, done_before + reported.done);
  merged.total = std::max({before.total, done_before + reported.total, merged.done});
  for (const auto& [stage, count] : before.failed) {
    int64_t& now_failed = merged.failed[stage];
    now_failed = std::max(now_failed, count);
  }
  if (before.best_ns > 0 && (merged.best_ns <= 0 || before.best_ns < merged.best_ns)) {
    merged.best_ns = before.best_ns;
    merged.best_schedule = before.best_schedule;
  }
  const bool moved = merged.done != before.done || merged.phase != before.phase ||
                     merged.best_ns != before.best_ns;
  merged.changed = moved ? now : before.changed;
  return merged;
}

absl::Status ResultOf(const Job& job) {
  switch (job.state) {
    case JobState::kSucceeded:
      return absl::OkStatus();
    case JobState::kCancelled:
      return MakeError(absl::StatusCode::kCancelled, absl::StrCat(job.name, " was cancelled"),
                       {"CANCELLED", {{"job", job.name}}});
    case JobState::kFailed: {
      ErrorInfo info{job.error_reason.empty() ? "JOB_FAILED" : job.error_reason,
                     {{"job", job.name}}};
      for (const auto& [stage, count] : job.histogram)
        info.details[absl::StrCat("outcomes_", stage)] = absl::StrCat(count);
      // An end without a code would read as success.
      const int code =
          job.error_code == 0 ? static_cast<int>(absl::StatusCode::kUnknown) : job.error_code;
      return MakeError(static_cast<absl::StatusCode>(code), job.error_message, std::move(info));
    }
    default:
      return MakeError(absl::StatusCode::kInternal, absl::StrCat(job.name, " has not ended"),
                       {"NOT_ENDED", {}});
  }
}

}  // namespace kiln::server
