// SPDX-License-Identifier: Apache-2.0
// Jobs, operations and the learning set.
#include <set>
#include <utility>

#include "absl/time/clock.h"
#include "tests/support/store_fake.h"
#include "tests/support/store_fake_parts.h"

namespace kiln::db {
namespace {

// Everything but what is fixed when a job is made.
void Replace(const Job& job, Job* stored) {
  Job next = job;
  next.key = stored->key;
  next.spec = stored->spec;
  next.canonical = stored->canonical;
  next.device = stored->device;
  next.client = stored->client;
  next.force = stored->force;
  next.created = stored->created;
  *stored = std::move(next);
}

}  // namespace

absl::Status StoreFake::CheckNewOperation(const Operation& operation) const {
  if (operation.request_id.empty()) return absl::OkStatus();
  for (const auto& [name, known] : operations_) {
    if (known.client == operation.client && known.request_id == operation.request_id) {
      return MakeError(absl::StatusCode::kAlreadyExists,
                       absl::StrCat("request ", operation.request_id, " is operation ", name),
                       {"REQUEST_EXISTS", {{"operation", name}}});
    }
  }
  return absl::OkStatus();
}

Job StoreFake::WithOperations(Job job) const {
  job.operations =
      static_cast<int>(std::count_if(operations_.begin(), operations_.end(), [&](const auto& item) {
        return item.second.job == job.name && !item.second.cancelled;
      }));
  return job;
}

absl::StatusOr<Job> StoreFake::CreateJob(Job job, Operation* operation) {
  Lock lock(mutex_);
  KILN_RETURN_IF_ERROR(write_failure_);
  KILN_RETURN_IF_ERROR(CheckNewOperation(*operation));
  for (const auto& [name, known] : jobs_) {
    if (known.key == job.key && !IsEnd(known.state)) {
      return MakeError(absl::StatusCode::kAlreadyExists, absl::StrCat("the key has ", name),
                       {"JOB_EXISTS", {{"job", name}}});
    }
  }
  job.name = NextName("jobs/");
  job.created = absl::Now();
  operation->name = NextName("operations/");
  operation->job = job.name;
  operation->created = job.created;
  jobs_[job.name] = job;
  operations_[operation->name] = *operation;
  return WithOperations(job);
}

absl::StatusOr<Operation> StoreFake::AddOperation(Operation operation) {
  Lock lock(mutex_);
  KILN_RETURN_IF_ERROR(write_failure_);
  if (!jobs_.count(operation.job)) return NotFound("job", operation.job);
  KILN_RETURN_IF_ERROR(CheckNewOperation(operation));
  operation.name = NextName("operations/");
  operation.created = absl::Now();
  operations_[operation.name] = operation;
  return operation;
}

absl::StatusOr<std::optional<Job>> StoreFake::FindLiveJob(const Key& key) {
  Lock lock(mutex_);
  KILN_RETURN_IF_ERROR(read_failure_);
  for (const auto& [name, job] : jobs_) {
    if (job.key == key && !IsEnd(job.state)) return std::make_optional(WithOperations(job));
  }
  return std::optional<Job>();
}

absl::StatusOr<Job> StoreFake::GetJob(absl::string_view name) {
  Lock lock(mutex_);
  KILN_RETURN_IF_ERROR(read_failure_);
  auto it = jobs_.find(std::string(name));
  if (it == jobs_.end()) return NotFound("job", name);
  return WithOperations(it->second);
}

absl::StatusOr<Operation> StoreFake::GetOperation(absl::string_view name) {
  Lock lock(mutex_);
  KILN_RETURN_IF_ERROR(read_failure_);
  auto it = operations_.find(std::string(name));
  if (it == operations_.end()) return NotFound("operation", name);
  return it->second;
}

absl::StatusOr<std::optional<Operation>> StoreFake::FindOperation(absl::string_view client,
                                                                  absl::string_view request_id) {
  Lock lock(mutex_);
  KILN_RETURN_IF_ERROR(read_failure_);
  for (const auto& [name, operation] : operations_) {
    if (!request_id.empty() && operation.client == client && operation.request_id == request_id) {
      return std::make_optional(operation);
    }
  }
  return std::optional<Operation>();
}

absl::StatusOr<PageOf<Job>> StoreFake::ListJobs(bool live_only, const Page& page) {
  Lock lock(mutex_);
  KILN_RETURN_IF_ERROR(read_failure_);
  KILN_ASSIGN_OR_RETURN(PageOf<Job> out, NewestFirst(jobs_, page, [&](const Job& job) {
                          return !live_only || !IsEnd(job.state);
                        }));
  for (Job& job : out.items) job = WithOperations(std::move(job));
  return out;
}

absl::StatusOr<PageOf<Operation>> StoreFake::ListOperations(const Page& page) {
  Lock lock(mutex_);
  KILN_RETURN_IF_ERROR(read_failure_);
  return NewestFirst(operations_, page, [](const Operation&) { return true; });
}

absl::Status StoreFake::CancelOperation(absl::string_view name) {
  Lock lock(mutex_);
  KILN_RETURN_IF_ERROR(write_failure_);
  auto it = operations_.find(std::string(name));
  if (it == operations_.end()) return NotFound("operation", name);
  it->second.cancelled = true;
  return absl::OkStatus();
}

absl::Status StoreFake::DeleteOperation(absl::string_view name) {
  Lock lock(mutex_);
  KILN_RETURN_IF_ERROR(write_failure_);
  if (operations_.erase(std::string(name)) == 0) return NotFound("operation", name);
  return absl::OkStatus();
}

absl::StatusOr<Job*> StoreFake::LiveJob(absl::string_view name, int64_t epoch, JobState state) {
  auto it = jobs_.find(std::string(name));
  if (it == jobs_.end()) return NotFound("job", name);
  if (IsEnd(it->second.state) || it->second.state != state || it->second.lease_epoch != epoch) {
    return MakeError(
        absl::StatusCode::kAborted,
        absl::StrCat(name, " is ", Print(it->second.state), " in lease ", it->second.lease_epoch,
                     ", no longer ", Print(state), " in lease ", epoch),
        {"JOB_CHANGED", {{"job", std::string(name)}}});
  }
  return &it->second;
}

absl::Status StoreFake::UpdateJob(const Job& job, int64_t expected_epoch, JobState expected_state) {
  Lock lock(mutex_);
  KILN_RETURN_IF_ERROR(write_failure_);
  KILN_ASSIGN_OR_RETURN(Job * stored, LiveJob(job.name, expected_epoch, expected_state));
  Replace(job, stored);
  return absl::OkStatus();
}

absl::StatusOr<std::string> StoreFake::CompleteJob(const Completion& completion,
                                                   int64_t expected_epoch,
                                                   JobState expected_state) {
  Lock lock(mutex_);
  KILN_RETURN_IF_ERROR(write_failure_);
  if (!IsEnd(completion.job.state)) {
    return InvalidField("JOB_NOT_ENDED", "job.state", Print(completion.job.state), "no end",
                        "succeeded, failed or cancelled");
  }
  if (completion.publication && !completion.record) {
    return InvalidField("PUBLICATION_WITHOUT_RECORD", "publication", completion.publication->kind,
                        "without a record", "a publication of the completion's own record");
  }
  KILN_ASSIGN_OR_RETURN(Job * stored, LiveJob(completion.job.name, expected_epoch, expected_state));
  std::string id;
  if (completion.record) {
    if (!(completion.record->key == stored->key) ||
        completion.record->canonical != stored->canonical) {
      return InvalidField("RECORD_OF_ANOTHER_KEY", "record.key", Print(completion.record->key),
                          "not the job's key", Print(stored->key));
    }
    for (const std::string& digest : completion.record->artifacts) {
      if (!artifacts_.count(digest)) {
        return MakeError(absl::StatusCode::kFailedPrecondition,
                         absl::StrCat("artifact ", digest, " is not stored"),
                         {"ARTIFACT_MISSING", {{"digest", digest}}});
      }
    }
    id = Insert(*completion.record);
    if (completion.publication) Publish(id);
  }
  Replace(completion.job, stored);
  if (!id.empty()) stored->record = id;
  return id;
}

// --- learning set ---

absl::Status StoreFake::AddOutcomes(absl::string_view job, int64_t epoch,
                                    const std::vector<Outcome>& outcomes) {
  Lock lock(mutex_);
  KILN_RETURN_IF_ERROR(write_failure_);
  auto it = jobs_.find(std::string(job));
  if (it == jobs_.end()) return NotFound("job", job);
  for (const Outcome& outcome : outcomes) {
    if (!outcome_ids_.emplace(it->first, epoch, outcome.sequence).second) continue;
    outcomes_.push_back({it->second.key, outcome});
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<Outcome>> StoreFake::ListOutcomes(const Key& key, int limit) {
  Lock lock(mutex_);
  KILN_RETURN_IF_ERROR(read_failure_);
  std::vector<Outcome> out;
  for (auto it = outcomes_.rbegin(); it != outcomes_.rend() && out.size() < limit; ++it) {
    if (it->key == key) out.push_back(it->outcome);
  }
  return out;
}

absl::StatusOr<std::vector<Blocked>> StoreFake::ListBlocked(const Key& key) {
  Lock lock(mutex_);
  KILN_RETURN_IF_ERROR(read_failure_);
  std::vector<Blocked> out;
  std::set<std::string> seen;
  for (const auto& [of, outcome] : outcomes_) {
    if (of.signature != key.signature || of.device != key.device || of.salt != key.salt) continue;
    if (outcome.stage != Stage::kTimeout && outcome.stage != Stage::kCrash) continue;
    if (!seen.insert(absl::StrCat(Print(outcome.schedule), "\n", Print(outcome.stage), "\n",
                                  outcome.toolchain))
             .second) {
      continue;
    }
    out.push_back({outcome.schedule, outcome.stage, outcome.toolchain});
  }
  return out;
}

}  // namespace kiln::db
