// SPDX-License-Identifier: Apache-2.0
// Recovery, interest (find or create, join, cancel) and the one way in which a job changes. Leases:
// job_table_leases.cc; reading and watching: job_table_views.cc.
#include "server/job_table.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/contract/error.h"
#include "server/job_entry.h"
#include "server/job_steps.h"

namespace kiln::server {

namespace {

using Lock = std::lock_guard<std::mutex>;

absl::Status Full(absl::string_view reason, absl::string_view what, int limit) {
  return MakeError(
      absl::StatusCode::kResourceExhausted,
      absl::StrCat(what, "; at most ", limit, " are allowed; try again later"),
      {std::string(reason), {{"limit", absl::StrCat(limit)}, {"retry_after_seconds", "10"}}});
}

}  // namespace

JobTable::JobTable(db::Store* store, const Clock* clock, JobLimits limits, Counters* counters)
    : store_(store), clock_(clock), limits_(limits), counters_(counters) {}

JobTable::~JobTable() = default;

absl::Status JobTable::Recover() {
  db::Page page{1000, ""};
  const absl::Time now = clock_->Now();
  do {
    KILN_ASSIGN_OR_RETURN(db::PageOf<Job> jobs, store_->ListJobs(/*live_only=*/true, page));
    Lock lock(mutex_);
    for (Job& job : jobs.items) {
      auto entry = std::make_unique<Entry>();
      entry->queued_since = now;
      if (job.state == JobState::kRunning) {
        entry->lease_since = entry->lease_began = now;
        // Nothing was heard, but the worker is given time to find the server again: a restart is no
        // attempt.
        entry->heard = now + limits_.reconnect_grace;
        entry->recovered = true;
        entry->granted = BudgetLeft(job);
        entry->used_before = job.leased_seconds;
        entry->done_before = TrialsDone(job);
      }
      // Sequence numbers of earlier leases are not known; those of this one may not meet them, and
      // epochs keep them apart.
      entry->next_sequence = static_cast<int>(TrialsDone(job));
      by_key_[Print(job.key)] = job.name;
      const std::string name = job.name;
      entry->job = std::move(job);
      jobs_[name] = std::move(entry);
    }
    page.token = jobs.next_token;
  } while (!page.token.empty());
  return absl::OkStatus();
}

JobTable::Entry* JobTable::Find(const std::string& name) const {
  const auto it = jobs_.find(name);
  return it == jobs_.end() ? nullptr : it->second.get();
}

absl::Status JobTable::CheckRoom(const Job& proposal) const {
  if (static_cast<int>(by_key_.size()) >= limits_.max_jobs) {
    return Full("QUEUE_FULL", "the queue is full", limits_.max_jobs);
  }
  int of_client = 0;
  for (const auto& [name, entry] : jobs_) of_client += entry->job.client == proposal.client;
  if (of_client >= limits_.max_jobs_per_client) {
    return Full("CLIENT_QUEUE_FULL",
                absl::StrCat("client ", proposal.client, " has as many jobs as it may"),
                limits_.max_jobs_per_client);
  }
  return absl::OkStatus();
}

absl::StatusOr<JobTable::Placed> JobTable::FindOrCreate(const Job& proposal, Operation operation) {
  const std::string key = Print(proposal.key);
  std::string name;
  {
    std::unique_lock<std::mutex> lock(mutex_);
    // Whoever creates the job of this key is in one commit: wait for it, then join.
    changed_.wait(lock, [&] {
      const auto it = by_key_.find(key);
      return it == by_key_.end() || !it->second.empty();
    });
    if (const auto it = by_key_.find(key); it != by_key_.end()) {
      name = it->second;
      Entry& entry = *jobs_.at(name);
      if (entry.job.operations + entry.joining >= limits_.max_operations_per_job) {
        return Full("WAITERS_FULL", absl::StrCat(name, " has as many operations as it may"),
                    limits_.max_operations_per_job);
      }
      ++entry.joining;
    } else {
      KILN_RETURN_IF_ERROR(CheckRoom(proposal));
      by_key_[key] = "";
    }
  }
  return name.empty() ? Create(proposal, std::move(operation))
                      : Join(name, proposal, std::move(operation));
}

absl::StatusOr<JobTable::Placed> JobTable::Create(const Job& proposal, Operation operation) {
  absl::StatusOr<Job> created = store_->CreateJob(proposal, &operation);
  {
    Lock lock(mutex_);
    if (created.ok()) {
      auto entry = std::make_unique<Entry>();
      entry->job = *created;
      entry->job.operations = 1;
      entry->queued_since = clock_->Now();
      entry->job.progress.phase = "queued";
      by_key_[Print(created->key)] = created->name;
      jobs_[created->name] = std::move(entry);
    } else {
      by_key_.erase(Print(proposal.key));
    }
  }
  changed_.notify_all();
  if (!created.ok()) return Repeat(created.status());
  Add(counters_->tunes_created);
  created->operations = 1;
  return Placed{*std::move(created), std::move(operation), /*joined=*/false};
}

absl::StatusOr<JobTable::Placed> JobTable::Join(const std::string& name, const Job& proposal,
                                                Operation operation) {
  operation.job = name;
  absl::StatusOr<Operation> added = store_->AddOperation(std::move(operation));
  bool raise = false;
  {
    Lock lock(mutex_);
    if (Entry* entry = Find(name)) {
      --entry->joining;
      if (added.ok()) {
        ++entry->job.operations;
        Job trial = entry->job;
        raise = RaiseBudget(proposal.budget, proposal.priority, &trial);
      }
    }
  }
  if (!added.ok()) {
    KILN_RETURN_IF_ERROR(StopIfUnwanted(name));
    return Repeat(added.status());
  }
  if (raise) {
    Claim claim(this, name);
    if (claim.entry() != nullptr) {
      KILN_RETURN_IF_ERROR(Write(claim, [&](Job* job) {
                             RaiseBudget(proposal.budget, proposal.priority, job);
                           }).status());
    }
  }
  Add(counters_->tunes_joined);
  KILN_ASSIGN_OR_RETURN(Job job, GetJob(name));
  return Placed{std::move(job), *std::move(added), /*joined=*/true};
}

// A request_id that was used: the operation that it made.
absl::StatusOr<JobTable::Placed> JobTable::Repeat(const absl::Status& exists) {
  const ErrorInfo info = GetErrorInfo(exists);
  const auto operation = info.details.find("operation");
  if (exists.code() != absl::StatusCode::kAlreadyExists || operation == info.details.end())
    return exists;
  Add(counters_->tunes_repeated);
  KILN_ASSIGN_OR_RETURN(OperationView view, GetOperation(operation->second));
  return Placed{std::move(view.job), std::move(view.operation), /*joined=*/true};
}

absl::Status JobTable::CancelOperation(const std::string& name) {
  KILN_ASSIGN_OR_RETURN(OperationView view, GetOperation(name));
  if (view.done()) return absl::OkStatus();
  KILN_RETURN_IF_ERROR(store_->CancelOperation(name));
  std::vector<Call> calls;
  {
    Lock lock(mutex_);
    Entry* entry = Find(view.job.name);
    // Two callers may cancel at once; one of them counts.
    if (entry == nullptr || !entry->cancelled_operations.insert(name).second)
      return absl::OkStatus();
    --entry->job.operations;
    auto shown = std::make_shared<const Job>(Shown(*entry));
    for (auto it = entry->watches.begin(); it != entry->watches.end();) {
      if (it->second.operation != name) {
        ++it;
        continue;
      }
      calls.push_back({std::move(it->second.watcher), shown, /*done=*/true, /*cancelled=*/true});
      watched_.erase(it->first);
      it = entry->watches.erase(it);
    }
  }
  MakeCalls(std::move(calls));
  return StopIfUnwanted(view.job.name);
}

absl::Status JobTable::StopIfUnwanted(const std::string& name) {
  Claim claim(this, name);
  if (claim.entry() == nullptr) return absl::OkStatus();
  Entry& entry = *claim.entry();
  std::string key;
  {
    Lock lock(mutex_);
    if (entry.job.operations > 0 || entry.joining > 0) return absl::OkStatus();
    // From here on nobody may join: who asks waits for the end, and then makes a job of his own.
    key = Print(entry.job.key);
    by_key_[key] = "";
    entry.stopping = true;
  }
  absl::Status stopped =
      Write(claim, [now = clock_->Now()](Job* job) { Cancel(now, job); }).status();
  if (!stopped.ok()) {
    Lock lock(mutex_);
    by_key_[key] = name;
    entry.stopping = false;
  }
  return stopped;  // the claim's end wakes those who wait
}

void JobTable::StopUnwanted() {
  std::vector<std::string> unwanted;
  {
    Lock lock(mutex_);
    for (const auto& [name, entry] : jobs_) {
      if (entry->job.operations <= 0 && entry->joining == 0 && !entry->claimed)
        unwanted.push_back(name);
    }
  }
  for (const std::string& name : unwanted) {
    if (!StopIfUnwanted(name).ok()) Add(counters_->store_failures);
  }
}

absl::Status JobTable::DeleteOperation(const std::string& name) {
  KILN_ASSIGN_OR_RETURN(OperationView view, GetOperation(name));
  if (!view.done()) {
    return MakeError(
        absl::StatusCode::kFailedPrecondition,
        absl::StrCat(name, " is not done; cancel it before it is deleted"),
        {"OPERATION_NOT_DONE", {{"field", "name"}, {"operation", name}, {"job", view.job.name}}});
  }
  return store_->DeleteOperation(name);
}

absl::StatusOr<Job> JobTable::Write(Claim& claim, const Step& step, std::optional<Record> record,
                                    std::optional<db::Publication> publication,
                                    const std::function<void(const std::string&)>& committed) {
  Entry& entry = *claim.entry();
  Job next;
  double used = 0;
  {
    Lock lock(mutex_);
    next = entry.job;
    used = LeasedSeconds(entry);
  }
  const int64_t epoch = next.lease_epoch;
  const JobState state = next.state;
  step(&next);
  const bool leaves = state == JobState::kRunning && next.state != JobState::kRunning;
  if (leaves) CountLeased(used, &next);
  const bool ends = IsEnd(next.state);
  std::string record_id;
  if (ends) {
    absl::StatusOr<std::string> id =
        store_->CompleteJob({next, std::move(record), std::move(publication)}, epoch, state);
    if (!id.ok()) return id.status();
    record_id = *std::move(id);
    if (committed) committed(record_id.empty() ? next.record : record_id);
  } else {
    KILN_RETURN_IF_ERROR(store_->UpdateJob(next, epoch, state));
  }

  std::vector<Call> calls;
  Job shown;
  {
    Lock lock(mutex_);
    // Again on what is in memory: progress and interest went on meanwhile.
    step(&entry.job);
    if (leaves) CountLeased(used, &entry.job);
    if (!record_id.empty()) entry.job.record = record_id;
    if (ends) {
      shown = entry.job;
      calls = Retire(jobs_.find(claim.name()));
    } else {
      if (leaves)
        entry.queued_since = clock_->Now();  // its turn comes by its age, its patience anew
      shown = Shown(entry);
      calls = CallsOf(entry);
    }
  }
  if (ends) claim.Forget();
  MakeCalls(std::move(calls));
  return shown;
}

std::vector<JobTable::Call> JobTable::Retire(
    std::unordered_map<std::string, std::unique_ptr<Entry>>::iterator it) {
  Entry& entry = *it->second;
  const Job& job = entry.job;
  switch (job.state) {
    case JobState::kSucceeded:
      Add(counters_->jobs_succeeded);
      break;
    case JobState::kCancelled:
      Add(counters_->jobs_cancelled);
      break;
    default:
      Add(counters_->jobs_failed);
  }
  const absl::Time began = job.started == absl::Time() ? job.ended : job.started;
  counters_->queue_seconds.fetch_add(absl::ToDoubleSeconds(began - job.created));
  counters_->run_seconds.fetch_add(job.leased_seconds);
  // Only if it is still ours: a later job of the key may not lose its place.
  const auto key = by_key_.find(Print(job.key));
  if (key != by_key_.end() && (key->second == job.name || entry.stopping)) by_key_.erase(key);
  std::vector<Call> calls;
  auto last = std::make_shared<const Job>(job);
  for (auto& [id, watch] : entry.watches) {
    calls.push_back({std::move(watch.watcher), last, /*done=*/true, /*cancelled=*/false});
    watched_.erase(id);
  }
  jobs_.erase(it);
  return calls;
}

}  // namespace kiln::server
