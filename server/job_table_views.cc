// SPDX-License-Identifier: Apache-2.0
// What others see of the table: jobs, operations, depths; and the watches, which tell them of
// changes.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/contract/error.h"
#include "server/job_entry.h"
#include "server/job_steps.h"
#include "server/job_table.h"

namespace kiln::server {
namespace {

using Lock = std::lock_guard<std::mutex>;

}  // namespace

absl::Status JobTable::OperationView::result() const {
  if (operation.cancelled) {
    return MakeError(absl::StatusCode::kCancelled, absl::StrCat(operation.name, " was cancelled"),
                     {"CANCELLED", {{"operation", operation.name}, {"job", job.name}}});
  }
  return ResultOf(job);
}

Job JobTable::Shown(const Entry& entry) const {
  Job job = entry.job;
  // Facts outrank what the worker says of them.
  for (const auto& [stage, count] : job.histogram) {
    if (stage == Print(Stage::kMeasured)) continue;
    int64_t& failed = job.progress.failed[stage];
    failed = std::max(failed, count);
  }
  if (job.state == JobState::kRunning) {
    job.progress.seconds_left =
        std::max(0.0, job.budget.seconds - job.leased_seconds - LeasedSeconds(entry));
    return job;
  }
  job.progress.seconds_left = std::max(0.0, job.budget.seconds - job.leased_seconds);
  if (job.state != JobState::kQueued) return job;
  const Executing executing = ExecutingLocked();
  const Turn turn = TurnOf(entry.job, executing);
  job.progress.queue_position = 1;
  for (const auto& [name, other] : jobs_) {
    const Job& o = other->job;
    if (o.state != JobState::kQueued || o.key.device != job.key.device) continue;
    job.progress.queue_position += TurnOf(o, executing) < turn;
  }
  return job;
}

absl::StatusOr<Job> JobTable::GetJob(const std::string& name) {
  {
    Lock lock(mutex_);
    if (const Entry* entry = Find(name)) return Shown(*entry);
  }
  return store_->GetJob(name);
}

absl::StatusOr<JobTable::OperationView> JobTable::GetOperation(const std::string& name) {
  OperationView view;
  KILN_ASSIGN_OR_RETURN(view.operation, store_->GetOperation(name));
  KILN_ASSIGN_OR_RETURN(view.job, GetJob(view.operation.job));
  return view;
}

std::vector<Job> JobTable::LiveJobs() {
  std::vector<Job> jobs;
  Lock lock(mutex_);
  jobs.reserve(jobs_.size());
  for (const auto& [name, entry] : jobs_) jobs.push_back(entry->job);
  return jobs;
}

// --- watches ---

absl::StatusOr<int64_t> JobTable::Watch(const std::string& operation, bool every_change,
                                        Watcher watcher, OperationView* view) {
  KILN_ASSIGN_OR_RETURN(*view, GetOperation(operation));
  if (view->done()) return 0;
  {
    Lock lock(mutex_);
    Entry* entry = Find(view->job.name);
    if (entry != nullptr && !entry->cancelled_operations.count(operation)) {
      view->job = Shown(*entry);
      const int64_t id = ++last_watch_;
      entry->watches[id] = {operation, every_change, std::move(watcher)};
      watched_[id] = view->job.name;
      return id;
    }
  }
  // It was done between the two looks.
  KILN_ASSIGN_OR_RETURN(*view, GetOperation(operation));
  return 0;
}

void JobTable::Unwatch(int64_t id) {
  Lock lock(mutex_);
  const auto it = watched_.find(id);
  if (it == watched_.end()) return;
  if (Entry* entry = Find(it->second)) entry->watches.erase(id);
  watched_.erase(it);
}

std::vector<JobTable::Call> JobTable::CallsOf(Entry& entry) {
  std::vector<Call> calls;
  std::shared_ptr<const Job> shown;
  for (const auto& [id, watch] : entry.watches) {
    if (!watch.every_change) continue;
    if (shown == nullptr) shown = std::make_shared<const Job>(Shown(entry));
    calls.push_back({watch.watcher, shown, /*done=*/false, /*cancelled=*/false});
  }
  return calls;
}

// NOLINTNEXTLINE(performance-unnecessary-value-param): taken over, so that they end here
void JobTable::MakeCalls(std::vector<Call> calls) {
  for (const Call& call : calls) call.watcher(call.job, call.done, call.cancelled);
}

// --- figures and checks ---

std::map<std::string, JobTable::Depth> JobTable::DepthByDevice() {
  const absl::Time now = clock_->Now();
  std::map<std::string, Depth> depths;
  Lock lock(mutex_);
  for (const auto& [name, entry] : jobs_) {
    Depth& depth = depths[entry->job.key.device];
    depth.operations += entry->job.operations;
    depth.watchers += static_cast<int>(entry->watches.size());
    if (entry->job.state == JobState::kRunning) {
      ++depth.running;
      continue;
    }
    ++depth.queued;
    depth.oldest_queued_seconds =
        std::max(depth.oldest_queued_seconds, absl::ToDoubleSeconds(now - entry->job.created));
  }
  return depths;
}

std::string JobTable::CheckInvariants() {
  Lock lock(mutex_);
  std::map<std::string, std::string> holders;
  size_t watches = 0;
  for (const auto& [name, entry] : jobs_) {
    const Job& job = entry->job;
    if (job.name != name) return absl::StrCat(name, " is filed under another name");
    if (IsEnd(job.state)) return absl::StrCat(name, " has ended and is still live");
    const auto key = by_key_.find(Print(job.key));
    if (key == by_key_.end()) return absl::StrCat(name, " is not found by its key");
    if (key->second != name && !entry->stopping)
      return absl::StrCat(name, " shares its key with ", key->second);
    if (job.operations < 0) return absl::StrCat(name, " has ", job.operations, " operations");
    if (job.operations == 0 && entry->joining == 0 && !entry->claimed)
      return absl::StrCat(name, " is wanted by nobody");
    if (job.attempts >= limits_.max_losses)
      return absl::StrCat(name, " lives after ", job.attempts, " losses");
    if (job.attempts != static_cast<int>(job.losses.size()))
      return absl::StrCat(name, " has losses without reasons");
    watches += entry->watches.size();
    if (job.state == JobState::kQueued) {
      if (!job.worker.empty()) return absl::StrCat(name, " waits and belongs to ", job.worker);
      continue;
    }
    if (job.worker.empty() || job.lease_epoch < 1)
      return absl::StrCat(name, " runs without a lease");
    if (const auto [it, fresh] = holders.emplace(job.worker, name); !fresh) {
      return absl::StrCat(job.worker, " holds ", name, " and ", it->second);
    }
  }
  if (by_key_.size() < jobs_.size()) return "a key is missing";
  if (watches != watched_.size())
    return absl::StrCat(watches, " watches, ", watched_.size(), " known");
  return "";
}

}  // namespace kiln::server
