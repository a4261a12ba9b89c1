// SPDX-License-Identifier: Apache-2.0
#include "server/publisher.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "proto/contract/error.h"
#include "server/job_steps.h"
#include "server/log.h"
#include "server/publication.h"
#include "server/staleness.h"

namespace kiln::server {
namespace {

// One line per job, for people: what was tried, what was rejected, how it ended.
void LogEnd(const Job& job, absl::string_view how) {
  int64_t fine = 0;
  std::vector<std::string> rejected;
  for (const auto& [stage, count] : job.histogram) {
    if (stage == Print(Stage::kMeasured)) {
      fine = count;
    } else {
      rejected.push_back(absl::StrCat(stage, " ", count));
    }
  }
  Log(job.state == JobState::kFailed ? Level::kWarning : Level::kInfo,
      absl::StrCat(
          job.name, " ", Print(job.state), ": ", how, "; candidates: ", fine, " fine",
          rejected.empty() ? "" : absl::StrCat(", rejected: ", absl::StrJoin(rejected, ", "))));
}

}  // namespace

absl::StatusOr<std::string> Publisher::Conclude(const std::string& name, const std::string& worker,
                                                int64_t epoch, Conclusion conclusion) {
  absl::StatusOr<std::string> answer = End(name, worker, epoch, std::move(conclusion));
  return absl::IsAborted(answer.status()) ? Repeated(name, epoch, answer.status()) : answer;
}

absl::StatusOr<std::string> Publisher::End(const std::string& name, const std::string& worker,
                                           int64_t epoch, Conclusion conclusion) {
  KILN_ASSIGN_OR_RETURN(const Job job, jobs_->GetLeased(name, worker, epoch));
  if (!conclusion.failure.ok()) {
    KILN_ASSIGN_OR_RETURN(
        const Job ended,
        jobs_->Complete(
            name, worker, epoch, std::nullopt, std::nullopt,
            [&, now = clock_->Now()](Job* j) { Fail(conclusion.failure, now, j); }, nullptr));
    LogEnd(ended, ended.error_message);
    return "";
  }
  if (!conclusion.record) return Keep(job, worker, conclusion.keep);
  absl::StatusOr<std::string> stored = Store(job, worker, *std::move(conclusion.record));
  if (!stored.ok()) {
    Add(stored.status().code() == absl::StatusCode::kInvalidArgument ? counters_->records_refused
                                                                     : counters_->store_failures);
    Log(Level::kError, absl::StrCat(name, ": the record of ", worker,
                                    " is not taken: ", stored.status().message()));
  }
  return stored;
}

// The answer to CompleteJob was lost and the worker asks again.
absl::StatusOr<std::string> Publisher::Repeated(const std::string& name, int64_t epoch,
                                                const absl::Status& lost) {
  const absl::StatusOr<Job> job = jobs_->GetJob(name);
  if (!job.ok() || job->lease_epoch != epoch) return lost;
  if (job->state == JobState::kFailed) return "";
  if (job->state != JobState::kSucceeded) return lost;
  return AnswerOf(*job);
}

absl::StatusOr<std::string> Publisher::AnswerOf(const Job& job) {
  KILN_ASSIGN_OR_RETURN(const std::optional<Record> answer,
                        store_->FindPublished(job.key, job.canonical));
  return answer ? answer->id : job.record;
}

absl::StatusOr<std::string> Publisher::Keep(const Job& job, const std::string& worker,
                                            const std::string& record) {
  KILN_ASSIGN_OR_RETURN(const std::string answer, AnswerOf(job));
  if (record.empty() || answer != record) {
    return MakeError(
        absl::StatusCode::kFailedPrecondition,
        absl::StrCat("keep: ", record, " does not answer the key; ",
                     answer.empty() ? "nothing" : answer, " does"),
        {"NOT_THE_INCUMBENT", {{"field", "keep"}, {"value", record}, {"allowed", answer}}});
  }
  KILN_ASSIGN_OR_RETURN(
      const Job ended, jobs_->Complete(
                           job.name, worker, job.lease_epoch, std::nullopt, std::nullopt,
                           [&, now = clock_->Now()](Job* j) { Succeed(record, now, j); }, nullptr));
  Add(counters_->not_better);
  LogEnd(ended, absl::StrCat(record, " stands"));
  return record;
}

absl::StatusOr<std::string> Publisher::Store(const Job& job, const std::string& worker,
                                             Record record) {
  KILN_ASSIGN_OR_RETURN(const std::shared_ptr<const Workload> workload,
                        lookup_->Check(job.spec, absl::StrCat("spec of ", job.name)));
  record.key.salt = job.key.salt;
  record.spec = job.spec;
  record.job = job.name;
  record.worker = worker;
  KILN_RETURN_IF_ERROR(CheckRecord(job, *workload, record));
  for (const std::string& digest : record.artifacts) {
    KILN_ASSIGN_OR_RETURN(const bool there, store_->HasArtifact(digest));
    if (there) continue;
    return MakeError(
        absl::StatusCode::kFailedPrecondition,
        absl::StrCat("record.artifacts: ", digest, " is not stored; write it first"),
        {"ARTIFACT_MISSING",
         {{"field", "record.artifacts"}, {"value", digest}, {"allowed", "a stored artifact"}}});
  }
  KILN_ASSIGN_OR_RETURN(const std::optional<Record> incumbent,
                        store_->FindPublished(job.key, job.canonical));
  const Decision decision =
      DecidePublication(record, incumbent, incumbent && DiffersInAttributes(*incumbent, record));
  std::optional<db::Publication> publication;
  if (decision.publish) publication = db::Publication{"", "publish", decision.reason};

  std::string answer;
  bool read_back = false;
  const auto committed = [&](const std::string& id) {
    lookup_->Published(job.key);
    // Read after write, before anyone is told that the job is done.
    const auto found = store_->FindPublished(job.key, job.canonical);
    const std::string expected = decision.publish ? id : incumbent->id;
    read_back = found.ok() && found->has_value() && (*found)->id == expected;
    answer = expected;
    if (!read_back) Add(counters_->not_stored);
  };
  KILN_ASSIGN_OR_RETURN(
      const Job ended,
      jobs_->Complete(
          job.name, worker, job.lease_epoch, std::move(record), std::move(publication),
          [now = clock_->Now()](Job* j) { Succeed(j->record, now, j); }, committed));
  Add(decision.publish ? counters_->published : counters_->not_better);
  LogEnd(ended,
         absl::StrCat(answer, decision.publish ? " published: " : " stands: ", decision.reason));
  if (!read_back) {
    return MakeError(absl::StatusCode::kDataLoss,
                     absl::StrCat(answer, " was stored and cannot be read back"),
                     {"NOT_STORED", {{"record", answer}, {"job", job.name}}});
  }
  return answer;
}

}  // namespace kiln::server
