// SPDX-License-Identifier: Apache-2.0
#include "client/convert.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "google/longrunning/operations.pb.h"
#include "kiln/v1/kiln.pb.h"
#include "proto/contract/error.h"
#include "proto/wire.h"

namespace kiln::client {
namespace {

void SetSeconds(double seconds, google::protobuf::Duration* message) {
  const double whole = std::floor(seconds);
  message->set_seconds(static_cast<int64_t>(whole));
  message->set_nanos(static_cast<int32_t>((seconds - whole) * 1e9));
}

}  // namespace

void ToWire(const Selection& selection, const std::string& default_device, v1::Selection* message) {
  wire::ToWire(selection.workload, message->mutable_workload());
  message->set_device(!selection.device.empty() ? selection.device
                      : !default_device.empty() ? default_device
                                                : "cpu");
  if (selection.cache.has_value()) {
    message->mutable_objective()->set_cache(*selection.cache == CacheState::kWarm
                                                ? v1::Objective::CACHE_WARM
                                                : v1::Objective::CACHE_COLD);
  }
  if (selection.burst.has_value()) {
    message->mutable_objective()->set_burst(*selection.burst == Burst::kBurst
                                                ? v1::Objective::BURST_BURST
                                                : v1::Objective::BURST_SUSTAINED);
  }
}

void ToWire(const TuneRequest& request, const std::string& default_device,
            v1::TuneScheduleRequest* message) {
  ToWire(request.selection, default_device, message->mutable_selection());
  v1::Budget* budget = message->mutable_budget();
  if (request.trials.has_value()) budget->set_trials(*request.trials);
  if (request.seconds.has_value()) SetSeconds(*request.seconds, budget->mutable_duration());
  if (request.wait_worker_seconds.has_value())
    SetSeconds(*request.wait_worker_seconds, budget->mutable_wait_worker());
  budget->set_seed(request.seed);
  message->set_force(request.force);
  message->set_priority(request.priority);
}

absl::StatusOr<Answer> FromWire(const v1::GetScheduleResponse& message) {
  Answer answer;
  answer.job = message.job();
  answer.lookup_ns = message.lookup_ns();
  answer.stale_because.assign(message.stale_because().begin(), message.stale_because().end());
  if (message.match() == v1::MATCH_NONE) return answer;
  const absl::StatusOr<Match> match = wire::FromWire(message.match());
  if (!match.ok()) return Unreadable(match.status(), "answer");
  absl::StatusOr<Record> record = wire::FromWire(message.record());
  if (!record.ok()) return Unreadable(record.status(), "record");
  answer.match = *match;
  answer.record = *std::move(record);
  if (answer.job.empty()) answer.job = answer.record.job;
  return answer;
}

absl::StatusOr<OperationState> FromWire(const google::longrunning::Operation& message) {
  OperationState state;
  state.name = message.name();
  state.done = message.done();
  v1::TuneMetadata metadata;
  if (message.has_metadata() && message.metadata().UnpackTo(&metadata)) {
    absl::StatusOr<Job> job = wire::FromWire(metadata.job());
    if (!job.ok()) return Unreadable(job.status(), "job");
    state.job = *std::move(job);
    state.joined = metadata.joined();
  }
  if (message.has_error()) {
    state.error = wire::FromWire(message.error());
  } else if (v1::TuneScheduleResponse response;
             message.has_response() && message.response().UnpackTo(&response)) {
    v1::GetScheduleResponse found;
    found.set_match(response.match());
    *found.mutable_record() = std::move(*response.mutable_record());
    found.set_job(response.job());
    absl::StatusOr<Answer> answer = FromWire(found);
    if (!answer.ok()) return answer.status();
    state.answer = *std::move(answer);
  } else if (state.done) {
    return Unreadable(absl::InternalError("it is done, with neither an answer nor an error"),
                      "operation");
  }
  return state;
}

absl::StatusOr<WorkerState> FromWire(const v1::Worker& message) {
  absl::StatusOr<DeviceFingerprint> device = wire::FromWire(message.device());
  if (!device.ok()) return Unreadable(device.status(), "worker");
  WorkerState worker;
  worker.name = message.name();
  worker.host = message.host();
  worker.version = message.version();
  worker.toolchain = message.toolchain();
  worker.state = message.state();
  worker.job = message.job();
  worker.timer = message.timer();
  worker.device = *std::move(device);
  worker.pid = message.pid();
  worker.jobs_done = message.jobs_done();
  worker.seconds_since_seen = message.seconds_since_seen();
  return worker;
}

absl::Status Unreadable(const absl::Status& status, absl::string_view what) {
  return MakeError(absl::StatusCode::kInternal,
                   absl::StrCat("the server's ", what, " cannot be read: ", status.message()),
                   {"UNREADABLE_ANSWER", {{"what", std::string(what)}}});
}

}  // namespace kiln::client
