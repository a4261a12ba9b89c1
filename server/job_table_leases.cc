// SPDX-License-Identifier: Apache-2.0
// Leases: granted under a new epoch, kept by heartbeats, ended by completion, release, loss or the
// clock.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "proto/contract/error.h"
#include "server/job_entry.h"
#include "server/job_steps.h"
#include "server/job_table.h"

namespace kiln::server {
namespace {

using Lock = std::lock_guard<std::mutex>;

// A worker that only seems alive may not sit on a job for ever: past its budget it has this long
// for the final re-measurement and the upload.
absl::Duration Overrun(const Budget& granted) {
  return absl::Seconds(std::max(300.0, granted.seconds));
}

constexpr int kMaxCounted = 1'000'000;  // outcomes of one job whose numbers are remembered

}  // namespace

// --- granting ---

Executing JobTable::ExecutingLocked() const {
  Executing executing;
  for (const auto& [name, entry] : jobs_) {
    if (entry->job.state == JobState::kRunning) ++executing[entry->job.client];
  }
  return executing;
}

JobTable::Leased JobTable::LeasedCopy(const Entry& entry) const {
  return {entry.job, entry.granted, entry.next_sequence};
}

absl::StatusOr<std::optional<JobTable::Leased>> JobTable::LeaseNext(const std::string& device,
                                                                    const std::string& worker) {
  for (;;) {
    std::string next;
    {
      Lock lock(mutex_);
      const Executing executing = ExecutingLocked();
      std::optional<Turn> first;
      for (const auto& [name, entry] : jobs_) {
        const Job& job = entry->job;
        if (job.state != JobState::kQueued || job.key.device != device) continue;
        const Turn turn = TurnOf(job, executing);
        if (!first || turn < *first) first = turn;
      }
      if (first) next = std::string(first->name);
    }
    if (next.empty()) return std::optional<Leased>();
    Claim claim(this, next);
    if (claim.entry() == nullptr) continue;  // ended meanwhile
    {
      Lock lock(mutex_);
      if (claim.entry()->job.state != JobState::kQueued) continue;  // another worker was quicker
    }
    const absl::Time now = clock_->Now();
    KILN_RETURN_IF_ERROR(Write(claim, [&](Job* job) { BeginLease(worker, now, job); }).status());
    Lock lock(mutex_);
    Entry& entry = *claim.entry();
    entry.lease_since = entry.lease_began = entry.heard = now;
    entry.recovered = false;
    entry.granted = BudgetLeft(entry.job);
    entry.used_before = entry.job.leased_seconds;
    entry.done_before = TrialsDone(entry.job);
    Add(counters_->leases_granted);
    return std::make_optional(LeasedCopy(entry));
  }
}

std::set<std::string> JobTable::QueuedDevices() {
  std::set<std::string> devices;
  Lock lock(mutex_);
  for (const auto& [name, entry] : jobs_) {
    if (entry->job.state == JobState::kQueued) devices.insert(entry->job.key.device);
  }
  return devices;
}

std::optional<JobTable::Leased> JobTable::LeaseOf(const std::string& worker) {
  Lock lock(mutex_);
  for (const auto& [name, entry] : jobs_) {
    if (entry->job.state == JobState::kRunning && entry->job.worker == worker) {
      entry->heard = std::max(entry->heard, clock_->Now());
      return LeasedCopy(*entry);
    }
  }
  return std::nullopt;
}

// --- keeping ---

absl::Status JobTable::LeaseLost(const std::string& name, const std::string& worker,
                                 int64_t epoch) const {
  Add(counters_->leases_fenced);
  return MakeError(
      absl::StatusCode::kAborted,
      absl::StrCat("lease ", epoch, " of ", name, " is no longer that of ", worker,
                   "; drop the job, its outcomes may still be reported"),
      {"LEASE_LOST", {{"job", name}, {"worker", worker}, {"lease_epoch", absl::StrCat(epoch)}}});
}

absl::Status JobTable::CheckLease(const Entry* entry, const std::string& name,
                                  const std::string& worker, int64_t epoch) const {
  if (entry != nullptr && entry->job.state == JobState::kRunning && entry->job.worker == worker &&
      entry->job.lease_epoch == epoch) {
    return absl::OkStatus();
  }
  return LeaseLost(name, worker, epoch);
}

absl::Status JobTable::KeepLease(const std::string& name, const std::string& worker,
                                 int64_t epoch) {
  Lock lock(mutex_);
  Entry* entry = Find(name);
  KILN_RETURN_IF_ERROR(CheckLease(entry, name, worker, epoch));
  entry->heard = clock_->Now();
  if (entry->recovered) Add(counters_->leases_kept);
  entry->recovered = false;
  return absl::OkStatus();
}

absl::StatusOr<Job> JobTable::GetLeased(const std::string& name, const std::string& worker,
                                        int64_t epoch) {
  Lock lock(mutex_);
  Entry* entry = Find(name);
  KILN_RETURN_IF_ERROR(CheckLease(entry, name, worker, epoch));
  entry->heard = clock_->Now();
  return entry->job;
}

absl::StatusOr<JobTable::Directive> JobTable::Heartbeat(const std::string& name,
                                                        const std::string& worker, int64_t epoch,
                                                        const Progress& progress) {
  std::vector<Call> calls;
  Directive directive;
  bool live = false;
  {
    Lock lock(mutex_);
    if (Entry* entry = Find(name)) {
      live = true;
      KILN_RETURN_IF_ERROR(CheckLease(entry, name, worker, epoch));
      const absl::Time now = clock_->Now();
      entry->heard = now;
      entry->recovered = false;
      entry->job.progress = MergeProgress(entry->job.progress, progress, entry->done_before, now);
      // In the lease's own terms: what it may use from its beginning on.
      Budget granted = entry->job.budget;
      granted.trials = std::max<int64_t>(1, granted.trials - entry->done_before);
      granted.seconds = std::max(0.0, granted.seconds - entry->used_before);
      if (!(granted == entry->granted)) directive.budget = granted;
      calls = CallsOf(*entry);
    }
  }
  MakeCalls(std::move(calls));
  if (live) return directive;
  // Ended: if nobody wanted it any more, the worker is told so; else its lease is gone.
  const absl::StatusOr<Job> ended = store_->GetJob(name);
  if (!ended.ok() || ended->state != JobState::kCancelled || ended->lease_epoch != epoch) {
    return LeaseLost(name, worker, epoch);
  }
  directive.cancel = true;
  return directive;
}

absl::Status JobTable::ReportOutcomes(const std::string& name, int64_t epoch,
                                      const std::vector<Outcome>& outcomes) {
  KILN_ASSIGN_OR_RETURN(const Job job, GetJob(name));
  if (epoch < 1 || epoch > job.lease_epoch) {
    return InvalidField("NO_SUCH_LEASE", "lease_epoch", absl::StrCat(epoch),
                        absl::StrCat("no lease of ", name), absl::StrCat("1..", job.lease_epoch));
  }
  KILN_RETURN_IF_ERROR(store_->AddOutcomes(name, epoch, outcomes));
  Add(counters_->outcomes, outcomes.size());
  std::vector<Call> calls;
  {
    Lock lock(mutex_);
    Entry* entry = Find(name);
    if (entry == nullptr) return absl::OkStatus();
    if (entry->job.lease_epoch == epoch && entry->job.state == JobState::kRunning)
      entry->heard = clock_->Now();
    for (const Outcome& outcome : outcomes) {
      if (entry->counted.size() >= kMaxCounted ||
          !entry->counted.emplace(epoch, outcome.sequence).second)
        continue;
      ++entry->job.histogram[std::string(Print(outcome.stage))];
      entry->next_sequence = std::max(entry->next_sequence, outcome.sequence + 1);
    }
    calls = CallsOf(*entry);
  }
  MakeCalls(std::move(calls));
  return absl::OkStatus();
}

// --- ending ---

absl::Status JobTable::ReleaseLease(const std::string& name, const std::string& worker,
                                    int64_t epoch) {
  Claim claim(this, name);
  {
    Lock lock(mutex_);
    KILN_RETURN_IF_ERROR(CheckLease(claim.entry(), name, worker, epoch));
  }
  KILN_RETURN_IF_ERROR(Write(claim, ReturnToQueue).status());
  Add(counters_->leases_released);
  return absl::OkStatus();
}

absl::Status JobTable::LoseLease(const std::string& name, const std::string& worker, int64_t epoch,
                                 const std::string& why) {
  Claim claim(this, name);
  {
    Lock lock(mutex_);
    KILN_RETURN_IF_ERROR(CheckLease(claim.entry(), name, worker, epoch));
  }
  const absl::Time now = clock_->Now();
  KILN_RETURN_IF_ERROR(
      Write(claim, [&](Job* job) { LoseWorker(why, limits_.max_losses, now, job); }).status());
  Add(counters_->leases_expired);
  return absl::OkStatus();
}

absl::StatusOr<Job> JobTable::Complete(const std::string& name, const std::string& worker,
                                       int64_t epoch, std::optional<Record> record,
                                       std::optional<db::Publication> publication,
                                       const std::function<void(Job*)>& end,
                                       const std::function<void(const std::string&)>& committed) {
  Claim claim(this, name);
  {
    Lock lock(mutex_);
    KILN_RETURN_IF_ERROR(CheckLease(claim.entry(), name, worker, epoch));
  }
  return Write(claim, end, std::move(record), std::move(publication), committed);
}

// --- time ---

double JobTable::LeasedSeconds(const Entry& entry) const {
  if (entry.job.state != JobState::kRunning) return 0;
  return absl::ToDoubleSeconds(std::min(clock_->Now(), entry.heard + limits_.lease_expiry) -
                               entry.lease_since);
}

std::vector<JobTable::Expired> JobTable::ExpiredLeases() {
  const absl::Time now = clock_->Now();
  std::vector<Expired> expired;
  Lock lock(mutex_);
  for (const auto& [name, entry] : jobs_) {
    if (entry->job.state != JobState::kRunning || entry->claimed) continue;
    std::string why;
    if (now - entry->heard > limits_.lease_expiry) {
      why = entry->recovered ? "did not come back after the server's restart"
                             : absl::StrFormat("not heard of for %.1f s",
                                               absl::ToDoubleSeconds(now - entry->heard));
    } else if (now - entry->lease_began >
               absl::Seconds(entry->job.budget.seconds) + Overrun(entry->job.budget)) {
      why = "far past its budget and still not done";
    } else {
      continue;
    }
    expired.push_back({name, entry->job.worker, std::move(why), entry->job.lease_epoch});
  }
  return expired;
}

void JobTable::FailUnserved(const std::function<absl::Time(const std::string&)>& last_present,
                            absl::Time server_start) {
  const absl::Time now = clock_->Now();
  std::vector<std::pair<std::string, absl::Status>> unserved;
  {
    Lock lock(mutex_);
    for (const auto& [name, entry] : jobs_) {
      const Job& job = entry->job;
      if (job.state != JobState::kQueued) continue;
      const absl::Time since =
          std::max({entry->queued_since, last_present(job.key.device), server_start});
      if (now - since <= absl::Seconds(job.budget.wait_worker_seconds)) continue;
      unserved.emplace_back(
          name,
          MakeError(absl::StatusCode::kFailedPrecondition,
                    absl::StrCat("no worker for ", job.key.device, " came within ",
                                 job.budget.wait_worker_seconds, " s"),
                    {"NO_WORKER_FOR_DEVICE", {{"field", "device"}, {"device", job.key.device}}}));
    }
  }
  for (const auto& [name, error] : unserved) {
    Claim claim(this, name);
    if (claim.entry() == nullptr) continue;
    {
      Lock lock(mutex_);
      if (claim.entry()->job.state != JobState::kQueued) continue;
    }
    // If the store fails, the next sweep tries again.
    if (!Write(claim, [&, error = error](Job* job) { Fail(error, now, job); }).ok())
      Add(counters_->store_failures);
  }
}

void JobTable::Checkpoint() {
  std::vector<std::string> running;
  {
    Lock lock(mutex_);
    for (const auto& [name, entry] : jobs_) {
      if (entry->job.state == JobState::kRunning && !entry->claimed) running.push_back(name);
    }
  }
  for (const std::string& name : running) {
    Claim claim(this, name);
    if (claim.entry() == nullptr) continue;
    double used = 0;
    {
      Lock lock(mutex_);
      if (claim.entry()->job.state != JobState::kRunning) continue;
      used = LeasedSeconds(*claim.entry());
    }
    if (!Write(claim, [&](Job* job) { CountLeased(used, job); }).ok()) {
      Add(counters_->store_failures);
      continue;
    }
    Lock lock(mutex_);
    claim.entry()->lease_since += absl::Seconds(used);
  }
}

}  // namespace kiln::server
