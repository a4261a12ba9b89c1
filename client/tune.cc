// SPDX-License-Identifier: Apache-2.0
// Jobs: asking for one, waiting for its end through restarts of the server, withdrawing.
#include <algorithm>
#include <random>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/connection.h"
#include "client/convert.h"
#include "proto/contract/error.h"

namespace kiln::client {
namespace {

// Of one stream; a job that is silent for longer is asked for again, so that a server that hangs is
// noticed.
constexpr absl::Duration kStreamLimit = absl::Minutes(2);
// An operation that a server has forgotten is asked for anew this many times.
constexpr int kFreshRequests = 3;

std::string MakeUuid() {
  std::random_device device;
  const auto word = [&device] { return uint64_t{device()} << 32 | device(); };
  const uint64_t high = (word() & ~uint64_t{0xf000}) | 0x4000;               // version 4
  const uint64_t low = (word() & ~(uint64_t{3} << 62)) | uint64_t{2} << 62;  // variant
  return absl::StrFormat("%08x-%04x-%04x-%04x-%012x", high >> 32, high >> 16 & 0xffff,
                         high & 0xffff, low >> 48, low & 0xffffffffffff);
}

std::map<std::string, std::string> NamesOf(const OperationState& state) {
  std::map<std::string, std::string> names = {{"operation", state.name}};
  if (!state.job.name.empty()) names["job"] = state.job.name;
  return names;
}

std::string JobOf(const OperationState& state) {
  return state.job.name.empty() ? state.name : state.job.name;
}

// What a stream's end means for a wait that is not over.
enum class StreamEnd { kAgain, kGiveUp };

StreamEnd Classify(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kOk:  // the server closes its streams when it goes down
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kDeadlineExceeded:  // ours, of the stream
    case absl::StatusCode::kCancelled:         // not by us: a server that goes down hard
    case absl::StatusCode::kUnknown:  // "Stream removed": the same, seen by older transports
      return StreamEnd::kAgain;
    default:
      return StreamEnd::kGiveUp;
  }
}

absl::Status Stopped(const OperationState& state) {
  return MakeError(absl::StatusCode::kCancelled,
                   absl::StrCat("stopped waiting for ", JobOf(state), "; it goes on"),
                   {"STOPPED", NamesOf(state)});
}

absl::Status TimedOut(const OperationState& state) {
  return MakeError(
      absl::StatusCode::kDeadlineExceeded,
      absl::StrCat("gave up waiting for ", JobOf(state), "; it goes on, as ", state.name),
      {"WAIT_TIMEOUT", NamesOf(state)});
}

// The end of a wait as one value: the answer, or why there is none.
absl::StatusOr<Answer> Conclude(const OperationState& state) {
  if (!state.error.ok()) {
    // A job's failure, as opposed to a call's.
    return WithDetails(WithDetails(state.error, NamesOf(state)), {{"failed", "job"}});
  }
  Answer answer = *state.answer;
  if (answer.job.empty()) answer.job = state.job.name;
  return answer;
}

}  // namespace

absl::StatusOr<OperationState> Client::StartTune(const TuneRequest& request) {
  v1::TuneScheduleRequest message;
  ToWire(request, wire_->options.device, &message);
  message.set_request_id(
      MakeUuid());  // a retry whose first try got through finds the same operation
  google::longrunning::Operation operation;
  KILN_RETURN_IF_ERROR(wire_->Call([&](grpc::ClientContext* context) {
    return wire_->kiln->TuneSchedule(context, message, &operation);
  }));
  return FromWire(operation);
}

absl::StatusOr<OperationState> Client::Watch(const std::string& operation,
                                             const OnProgress& on_progress, std::stop_token stop,
                                             absl::Duration wait) {
  const absl::Time give_up = absl::Now() + wait;
  OperationState state;
  state.name = operation;
  v1::WatchOperationRequest request;
  request.set_name(operation);
  absl::Time last_contact = absl::Now();
  Backoff backoff;
  while (true) {
    grpc::ClientContext context;
    wire_->Prepare(&context, std::min(give_up, absl::Now() + kStreamLimit));
    const std::stop_callback cancel(stop, [&context] { context.TryCancel(); });
    const auto reader = wire_->kiln->WatchOperation(&context, request);
    google::longrunning::Operation message;
    while (reader->Read(&message)) {
      last_contact = absl::Now();
      backoff.Reset();
      absl::StatusOr<OperationState> next = FromWire(message);
      if (!next.ok()) {
        context.TryCancel();
        return WithDetails(next.status(), NamesOf(state));
      }
      state = *std::move(next);
      if (on_progress) on_progress(state);
      if (state.done) return state;
    }
    const absl::Status status = wire_->ToStatus(reader->Finish());
    if (stop.stop_requested()) return Stopped(state);
    if (absl::Now() >= give_up) return TimedOut(state);
    if (Classify(status) == StreamEnd::kGiveUp) return WithDetails(status, NamesOf(state));
    const absl::Duration left = last_contact + wire_->options.reconnect_for - absl::Now();
    if (left <= absl::ZeroDuration()) {
      return MakeError(absl::StatusCode::kUnavailable,
                       absl::StrCat("server ", wire_->options.server, " went away while ",
                                    JobOf(state), " was under way and did not come back for ",
                                    absl::FormatDuration(wire_->options.reconnect_for),
                                    "; the job is kept there: ", status.message()),
                       {"SERVER_LOST",
                        {{"operation", state.name},
                         {"job", state.job.name},
                         {"server", wire_->options.server}}});
    }
    backoff.Wait(stop, std::min(left, give_up - absl::Now()));
  }
}

absl::StatusOr<Answer> Client::Tune(const TuneRequest& request, const OnProgress& on_progress,
                                    std::stop_token stop) {
  const absl::Time give_up = absl::Now() + request.wait;
  absl::Status forgotten;
  for (int fresh = 0; fresh <= kFreshRequests; ++fresh) {
    KILN_ASSIGN_OR_RETURN(const OperationState started, StartTune(request));
    if (on_progress) on_progress(started);
    if (started.done) return Conclude(started);
    const absl::StatusOr<OperationState> ended =
        Watch(started.name, on_progress, stop, give_up - absl::Now());
    if (ended.ok()) return Conclude(*ended);
    if (ended.status().code() != absl::StatusCode::kNotFound)
      return WithDetails(ended.status(), NamesOf(started));
    forgotten = WithDetails(ended.status(), NamesOf(started));
  }
  return forgotten;
}

absl::Status Client::Cancel(const std::string& operation) {
  google::longrunning::CancelOperationRequest request;
  request.set_name(operation);
  google::protobuf::Empty response;
  return wire_->Call([&](grpc::ClientContext* context) {
    return wire_->operations->CancelOperation(context, request, &response);
  });
}

}  // namespace kiln::client
