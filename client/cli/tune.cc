// SPDX-License-Identifier: Apache-2.0
// kiln tune, kiln lookup, kiln job watch.
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "client/cli/commands.h"
#include "client/cli/json.h"
#include "client/cli/progress_line.h"
#include "client/cli/select.h"
#include "client/cli/words.h"
#include "proto/contract/error.h"

namespace kiln::cli {
namespace {

void PrintAnswer(Session& session, const client::Answer& answer, const Workload& workload) {
  session.output().Print(AnswerJson(answer, workload), AnswerWords(answer, workload));
}

constexpr absl::Duration kJobPoll = absl::Milliseconds(300);

std::string DetailOf(const absl::Status& status, const std::string& name) {
  const ErrorInfo info = GetErrorInfo(status);
  const auto found = info.details.find(name);
  return found == info.details.end() ? "" : found->second;
}

// After Ctrl-C: withdraws this caller's interest, and says how to come back.
absl::Status Withdraw(client::Client* client, const absl::Status& stopped) {
  const std::string operation = DetailOf(stopped, "operation"), job = DetailOf(stopped, "job");
  if (operation.empty())
    return MakeError(absl::StatusCode::kCancelled, "interrupted", {"INTERRUPTED", {}});
  const absl::Status cancelled = client->Cancel(operation);
  std::string message =
      absl::StrCat("interrupted; this caller's interest in the job ", job, " is ");
  absl::StrAppend(&message, cancelled.ok() ? "withdrawn"
                                           : absl::StrCat("kept, since it could not be withdrawn: ",
                                                          cancelled.message()));
  absl::StrAppend(&message, ". Its state: kiln job get ", job, "; to ask again: the same command");
  return MakeError(absl::StatusCode::kCancelled, message,
                   {"INTERRUPTED", {{"operation", operation}, {"job", job}}});
}

// A job's own failure has an exit code of its own.
absl::Status AsJobFailure(const absl::Status& status) {
  if (DetailOf(status, "failed") != "job") return status;
  ErrorInfo info = GetErrorInfo(status);
  if (ExitCodeOfJob(status) == kUnavailable) return status;
  info.details.emplace("cause",
                       info.reason.empty() ? absl::StatusCodeToString(status.code()) : info.reason);
  info.reason = "JOB_FAILED";
  return MakeError(status.code(), status.message(), info);
}

// The server says what is missing; only this side knows how it was asked for.
absl::Status WithTuneCommand(const absl::Status& status, const SelectText& select) {
  if (!absl::IsNotFound(status)) return status;
  const std::string command = absl::StrCat("kiln tune ", SelectWords(select));
  ErrorInfo info = GetErrorInfo(status);
  info.details["command"] = command;
  return MakeError(status.code(), absl::StrCat(status.message(), "; to tune it: ", command), info);
}

// A job has no stream of its own: it is asked for until it has ended.
absl::Status WatchJob(Session& session, const std::string& name) {
  const std::stop_token stop = session.interrupt().TakeToken();
  KILN_ASSIGN_OR_RETURN(client::Client* const client, session.Connect());
  const auto& timeout = session.options().timeout_seconds;
  const absl::Time give_up =
      timeout.has_value() ? absl::Now() + absl::Seconds(*timeout) : absl::InfiniteFuture();
  ProgressLine line(stderr);
  KILN_ASSIGN_OR_RETURN(Job job, client->GetJob(name));
  while (job.state == JobState::kQueued || job.state == JobState::kRunning) {
    line.Draw(ProgressWords(job, std::nullopt));
    if (stop.stop_requested())
      return MakeError(absl::StatusCode::kCancelled, absl::StrCat(name, " goes on"),
                       {"INTERRUPTED", {{"job", name}}});
    if (absl::Now() >= give_up) {
      return MakeError(absl::StatusCode::kDeadlineExceeded,
                       absl::StrCat("gave up waiting for ", name, "; it goes on"),
                       {"WAIT_TIMEOUT", {{"job", name}}});
    }
    absl::SleepFor(kJobPoll);
    KILN_ASSIGN_OR_RETURN(job, client->GetJob(name));
  }
  line.Clear();
  if (job.state != JobState::kSucceeded) {
    const bool failed = job.state == JobState::kFailed;
    return AsJobFailure(MakeError(
        failed ? static_cast<absl::StatusCode>(job.error_code) : absl::StatusCode::kCancelled,
        failed ? job.error_message : absl::StrCat(name, " was cancelled"),
        {failed ? job.error_reason : "CANCELLED", {{"job", name}, {"failed", "job"}}}));
  }
  client::Answer answer;
  answer.match = Match::kExact;
  answer.job = name;
  KILN_ASSIGN_OR_RETURN(answer.record, client->GetRecord(job.record));
  KILN_ASSIGN_OR_RETURN(const Workload workload, CheckWorkload(answer.record.spec));
  PrintAnswer(session, answer, workload);
  return absl::OkStatus();
}

}  // namespace

absl::Status RunTune(Session& session) {
  const Options& options = session.options();
  client::TuneRequest request;
  KILN_ASSIGN_OR_RETURN(request.selection, ParseSelect(options.select));
  KILN_ASSIGN_OR_RETURN(const Workload workload, CheckWorkload(request.selection.workload));
  request.trials = options.trials;
  request.seconds = options.seconds;
  request.wait_worker_seconds = options.wait_worker;
  request.seed = options.seed;
  request.force = options.force;
  if (options.timeout_seconds.has_value()) request.wait = absl::Seconds(*options.timeout_seconds);
  const std::stop_token stop = session.interrupt().TakeToken();
  KILN_ASSIGN_OR_RETURN(client::Client* const client, session.Connect(/*needs_worker=*/true));
  if (stop.stop_requested()) return Withdraw(client, absl::OkStatus());

  const std::optional<double> operations = OperationsOf(workload);
  ProgressLine line(stderr);
  const auto show = [&](const client::OperationState& state) {
    line.Draw(ProgressWords(state.job, operations));
  };
  const absl::StatusOr<client::Answer> answer = client->Tune(request, show, stop);
  line.Clear();
  if (!answer.ok()) {
    if (stop.stop_requested()) return Withdraw(client, answer.status());
    return AsJobFailure(answer.status());
  }
  PrintAnswer(session, *answer, workload);
  return absl::OkStatus();
}

absl::Status RunLookup(Session& session) {
  const Options& options = session.options();
  KILN_ASSIGN_OR_RETURN(const client::Selection selection, ParseSelect(options.select));
  KILN_ASSIGN_OR_RETURN(const Workload workload, CheckWorkload(selection.workload));
  const std::optional<Match> quality = ParseMatch(options.min_quality);
  if (!quality.has_value()) {
    return InvalidField("INVALID_QUALITY", "--min-quality", options.min_quality, "no quality",
                        "exact, stale, near, predicted, default");
  }
  KILN_ASSIGN_OR_RETURN(client::Client* const client, session.Connect());
  const absl::StatusOr<client::Answer> answer = client->GetSchedule(selection, *quality);
  if (!answer.ok()) return WithTuneCommand(answer.status(), options.select);
  PrintAnswer(session, *answer, workload);
  return absl::OkStatus();
}

absl::Status RunJobWatch(Session& session) {
  const std::string& name = session.options().name;
  if (absl::StartsWith(name, "jobs/")) return WatchJob(session, name);
  if (!absl::StartsWith(name, "operations/")) {
    return InvalidField("INVALID_NAME", "NAME", name, "no job and no operation",
                        "jobs/... or operations/..., as tune names them");
  }
  const std::stop_token stop = session.interrupt().TakeToken();
  KILN_ASSIGN_OR_RETURN(client::Client* const client, session.Connect());
  ProgressLine line(stderr);
  const auto show = [&](const client::OperationState& state) {
    line.Draw(ProgressWords(state.job, std::nullopt));
  };
  const auto& timeout = session.options().timeout_seconds;
  const absl::Duration wait =
      timeout.has_value() ? absl::Seconds(*timeout) : absl::InfiniteDuration();
  const absl::StatusOr<client::OperationState> state = client->Watch(name, show, stop, wait);
  line.Clear();
  if (!state.ok()) return state.status();  // a watcher has no interest to withdraw
  if (!state->error.ok()) {
    ErrorInfo info = GetErrorInfo(state->error);
    info.details.insert({{"operation", state->name}, {"job", state->job.name}, {"failed", "job"}});
    return AsJobFailure(MakeError(state->error.code(), state->error.message(), info));
  }
  KILN_ASSIGN_OR_RETURN(const Workload workload, CheckWorkload(state->answer->record.spec));
  PrintAnswer(session, *state->answer, workload);
  return absl::OkStatus();
}

}  // namespace kiln::cli
