// SPDX-License-Identifier: Apache-2.0
// Budgets, progress and jobs.
#include "kiln/v1/types.pb.h"
#include "proto/wire.h"
#include "proto/wire_values.h"

namespace kiln::wire {
namespace {

constexpr int kMaxEntries = 256;
constexpr double kMaxSeconds = 30 * 24 * 3600;  // a budget beyond a month is a slip

static_assert(EnumToWire<v1::JobState>(JobState::kQueued) == v1::JOB_STATE_QUEUED);
static_assert(EnumToWire<v1::JobState>(JobState::kCancelled) == v1::JOB_STATE_CANCELLED);

absl::Status SecondsFromWire(const google::protobuf::Duration& message, absl::string_view field,
                             double* seconds) {
  *seconds = DurationFromWire(message);
  if (*seconds >= 0 && *seconds <= kMaxSeconds) return absl::OkStatus();
  return InvalidField("OUT_OF_RANGE", field, absl::StrCat(*seconds, " s"), "out of range",
                      absl::StrCat("0..", kMaxSeconds, " s"));
}

}  // namespace

void ToWire(const Budget& budget, v1::Budget* message) {
  message->Clear();
  message->set_trials(budget.trials);
  DurationToWire(budget.seconds, message->mutable_duration());
  message->set_seed(budget.seed);
  DurationToWire(budget.wait_worker_seconds, message->mutable_wait_worker());
}

absl::StatusOr<Budget> FromWire(const v1::Budget& message, const Budget& defaults,
                                absl::string_view at) {
  Budget budget = defaults;
  budget.seed = message.seed();
  if (message.trials() != 0) {
    if (message.trials() < 0 || message.trials() > 1'000'000'000) {
      return InvalidField("OUT_OF_RANGE", absl::StrCat(at, ".trials"),
                          absl::StrCat(message.trials()), "out of range",
                          "1..1000000000, or 0 for the server's default");
    }
    budget.trials = message.trials();
  }
  if (message.has_duration()) {
    KILN_RETURN_IF_ERROR(
        SecondsFromWire(message.duration(), absl::StrCat(at, ".duration"), &budget.seconds));
  }
  if (message.has_wait_worker()) {
    KILN_RETURN_IF_ERROR(SecondsFromWire(message.wait_worker(), absl::StrCat(at, ".wait_worker"),
                                         &budget.wait_worker_seconds));
  }
  return budget;
}

void ToWire(const Progress& progress, v1::Progress* message) {
  message->Clear();
  message->set_phase(progress.phase);
  message->set_queue_position(progress.queue_position);
  message->set_done(progress.done);
  message->set_total(progress.total);
  MapToWire(progress.failed, message->mutable_failed());
  message->set_best_ns(progress.best_ns);
  message->set_best_schedule(progress.best_schedule);
  message->set_seconds_left(progress.seconds_left);
  if (IsSet(progress.changed)) TimeToWire(progress.changed, message->mutable_change_time());
}

absl::StatusOr<Progress> FromWire(const v1::Progress& message, absl::string_view at) {
  Progress progress;
  KILN_RETURN_IF_ERROR(CheckSize(message.phase(), 256, absl::StrCat(at, ".phase")));
  KILN_RETURN_IF_ERROR(
      CheckSize(message.best_schedule(), 16384, absl::StrCat(at, ".best_schedule")));
  KILN_RETURN_IF_ERROR(CheckAtLeast(message.done(), 0, absl::StrCat(at, ".done")));
  KILN_RETURN_IF_ERROR(CheckAtLeast(message.total(), 0, absl::StrCat(at, ".total")));
  KILN_RETURN_IF_ERROR(CheckQuantity(message.best_ns(), absl::StrCat(at, ".best_ns")));
  progress.phase = message.phase();
  progress.queue_position = message.queue_position();
  progress.done = message.done();
  progress.total = message.total();
  KILN_RETURN_IF_ERROR(
      MapFromWire(message.failed(), kMaxEntries, absl::StrCat(at, ".failed"), &progress.failed));
  progress.best_ns = message.best_ns();
  progress.best_schedule = message.best_schedule();
  progress.seconds_left = message.seconds_left();
  if (message.has_change_time()) progress.changed = TimeFromWire(message.change_time());
  return progress;
}

void ToWire(const Job& job, v1::Job* message) {
  message->Clear();
  message->set_name(job.name);
  message->set_signature(job.key.signature);
  message->set_device_id(job.key.device);
  ToWire(job.key.objective, message->mutable_objective());
  ToWire(job.spec, message->mutable_spec());
  ToWire(job.device, message->mutable_device());
  ToWire(job.budget, message->mutable_budget());
  message->set_priority(job.priority);
  message->set_client(job.client);
  message->set_state(EnumToWire<v1::JobState>(job.state));
  message->set_force(job.force);
  message->set_attempts(job.attempts);
  message->mutable_losses()->Assign(job.losses.begin(), job.losses.end());
  message->set_worker(job.worker);
  ToWire(job.progress, message->mutable_progress());
  message->set_record(RecordName(job.record));
  message->set_error_code(job.error_code);
  message->set_error_reason(job.error_reason);
  message->set_error_message(job.error_message);
  MapToWire(job.histogram, message->mutable_histogram());
  message->set_operation_count(job.operations);
  if (IsSet(job.created)) TimeToWire(job.created, message->mutable_create_time());
  if (IsSet(job.started)) TimeToWire(job.started, message->mutable_start_time());
  if (IsSet(job.ended)) TimeToWire(job.ended, message->mutable_end_time());
}

absl::StatusOr<Job> FromWire(const v1::Job& message, absl::string_view at) {
  Job job;
  job.name = message.name();
  job.key.signature = message.signature();
  job.key.device = message.device_id();
  KILN_ASSIGN_OR_RETURN(job.key.objective,
                        FromWire(message.objective(), Objective{}, absl::StrCat(at, ".objective")));
  KILN_ASSIGN_OR_RETURN(job.spec, FromWire(message.spec(), absl::StrCat(at, ".spec")));
  KILN_ASSIGN_OR_RETURN(job.device, FromWire(message.device(), absl::StrCat(at, ".device")));
  KILN_ASSIGN_OR_RETURN(job.budget,
                        FromWire(message.budget(), Budget{}, absl::StrCat(at, ".budget")));
  job.priority = message.priority();
  job.client = message.client();
  KILN_RETURN_IF_ERROR(
      EnumFromWire(message.state(), JobState::kCancelled, absl::StrCat(at, ".state"), &job.state));
  job.force = message.force();
  job.attempts = message.attempts();
  job.losses.assign(message.losses().begin(), message.losses().end());
  job.worker = message.worker();
  KILN_ASSIGN_OR_RETURN(job.progress, FromWire(message.progress(), absl::StrCat(at, ".progress")));
  job.record = RecordId(message.record());
  job.error_code = message.error_code();
  job.error_reason = message.error_reason();
  job.error_message = message.error_message();
  KILN_RETURN_IF_ERROR(MapFromWire(message.histogram(), kMaxEntries, absl::StrCat(at, ".histogram"),
                                   &job.histogram));
  job.operations = message.operation_count();
  if (message.has_create_time()) job.created = TimeFromWire(message.create_time());
  if (message.has_start_time()) job.started = TimeFromWire(message.start_time());
  if (message.has_end_time()) job.ended = TimeFromWire(message.end_time());
  return job;
}

}  // namespace kiln::wire
