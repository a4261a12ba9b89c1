// SPDX-License-Identifier: Apache-2.0
#include "server/worker_service.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "absl/strings/match.h"
#include "server/call_service.h"
#include "server/log.h"

namespace kiln::server {
namespace {

constexpr int kMaxOutcomes = 10'000;        // of one report
constexpr int kKnownOutcomes = 1'000;       // that go with a lease
constexpr size_t kMaxKnownBytes = 2 << 20;  // of them: a lease fits into every message

void DurationOf(absl::Duration duration, google::protobuf::Duration* message) {
  absl::Duration rest;
  message->set_seconds(absl::IDivDuration(duration, absl::Seconds(1), &rest));
  message->set_nanos(static_cast<int32_t>(absl::ToInt64Nanoseconds(rest)));
}

struct PollState {
  std::atomic<int64_t> id{0};
  std::atomic<bool> ended{false};
};

absl::Status CheckName(const std::string& name) {
  const bool good =
      absl::StartsWith(name, "workers/") && name.size() > 8 && name.size() <= 256 &&
      std::all_of(name.begin(), name.end(), [](char c) { return c > ' ' && c <= '~'; });
  if (good) return absl::OkStatus();
  return InvalidField("BAD_NAME", "name", name, "no worker's name",
                      "workers/HOST-PID-HEX, at most 256 bytes");
}

absl::StatusOr<Worker> WorkerOf(const v1::RegisterRequest& request) {
  KILN_RETURN_IF_ERROR(CheckName(request.name()));
  Worker worker;
  worker.name = request.name();
  worker.host = request.host();
  worker.pid = request.pid();
  KILN_ASSIGN_OR_RETURN(worker.device, wire::FromWire(request.device()));
  worker.version = request.version();
  worker.toolchain = request.toolchain();
  worker.timer = request.timer();
  worker.emitter = request.emitter();
  worker.method_version = request.method_version();
  worker.families.assign(request.families().begin(), request.families().end());
  return worker;
}

absl::StatusOr<Conclusion> ConclusionOf(const v1::CompleteJobRequest& request) {
  Conclusion conclusion;
  switch (request.result_case()) {
    case v1::CompleteJobRequest::kRecord: {
      KILN_ASSIGN_OR_RETURN(conclusion.record, wire::FromWire(request.record()));
      return conclusion;
    }
    case v1::CompleteJobRequest::kKeep:
      conclusion.keep = wire::RecordId(request.keep());
      return conclusion;
    case v1::CompleteJobRequest::kFailure: {
      const v1::Failure& failure = request.failure();
      if (failure.code() < 1 || failure.code() > 16) {
        return InvalidField("OUT_OF_RANGE", "failure.code", absl::StrCat(failure.code()),
                            "no error", "1..16");
      }
      conclusion.failure =
          MakeError(static_cast<absl::StatusCode>(failure.code()), failure.message(),
                    {failure.reason().empty() ? "JOB_FAILED" : failure.reason(), {}});
      return conclusion;
    }
    default:
      return InvalidField("MISSING_FIELD", "result", "", "missing", "record, keep or failure");
  }
}

}  // namespace

grpc::ServerUnaryReactor* WorkerService::Register(Context* context,
                                                  const v1::RegisterRequest* request,
                                                  v1::RegisterResponse* response) {
  return Offload(core_, context, [=, this]() -> absl::Status {
    KILN_ASSIGN_OR_RETURN(Worker worker, WorkerOf(*request));
    const DeviceFingerprint device = worker.device;
    KILN_RETURN_IF_ERROR(core_->roster.Register(std::move(worker)));
    // Without the store a worker can still serve; it is remembered when it comes again.
    if (const absl::Status remembered = core_->lookup.RememberDevice(device); !remembered.ok()) {
      Add(core_->counters.store_failures);
      Log(Level::kError,
          absl::StrCat("device of ", request->name(), " not remembered: ", remembered.message()));
    }
    DurationOf(core_->options.heartbeat, response->mutable_heartbeat_interval());
    DurationOf(core_->options.jobs.lease_expiry, response->mutable_lease_expiry());
    if (!request->job().empty()) {
      response->set_keep_lease(
          core_->jobs.KeepLease(request->job(), request->name(), request->lease_epoch()).ok());
    }
    Log(Level::kInfo,
        absl::StrCat(
            request->name(), " registered with ", DeviceId(device),
            response->keep_lease() ? absl::StrCat(" and goes on with ", request->job()) : ""));
    return absl::OkStatus();
  });
}

absl::Status WorkerService::FillLease(const JobTable::Leased& leased, v1::Lease* message) {
  const Job& job = leased.job;
  message->set_job(job.name);
  message->set_epoch(job.lease_epoch);
  wire::ToWire(job.spec, message->mutable_spec());
  message->set_signature(job.key.signature);
  wire::ToWire(job.device, message->mutable_device());
  wire::ToWire(job.key.objective, message->mutable_objective());
  wire::ToWire(leased.left, message->mutable_budget());
  message->set_first_sequence(leased.first_sequence);
  KILN_ASSIGN_OR_RETURN(const std::optional<Record> incumbent,
                        core_->store->FindPublished(job.key, job.canonical));
  if (incumbent) {
    wire::ToWire(*incumbent, message->mutable_incumbent());
    message->mutable_incumbent()->set_published(true);
  }
  KILN_ASSIGN_OR_RETURN(const std::vector<Outcome> known,
                        core_->store->ListOutcomes(job.key, kKnownOutcomes));
  size_t bytes = 0;
  for (const Outcome& outcome : known) {
    v1::Outcome shown;
    wire::ToWire(outcome, &shown);
    shown.mutable_measurement()->clear_samples_ns();
    if (!outcome.measurement) shown.clear_measurement();
    bytes += shown.ByteSizeLong();
    if (bytes > kMaxKnownBytes) break;
    *message->add_known() = std::move(shown);
  }
  KILN_ASSIGN_OR_RETURN(const std::vector<db::Blocked> blocked, core_->store->ListBlocked(job.key));
  for (const db::Blocked& item : blocked) {
    auto* shown = message->add_blocklist();
    wire::ToWire(item.schedule, shown->mutable_schedule());
    shown->set_stage(wire::ToWire(item.stage));
    shown->set_toolchain(item.toolchain);
  }
  return absl::OkStatus();
}

grpc::ServerUnaryReactor* WorkerService::LeaseJob(Context*, const v1::LeaseJobRequest* request,
                                                  v1::LeaseJobResponse* response) {
  // When the call has ended, for whatever reason, its poll is forgotten: a worker that died is
  // offered nothing.
  auto poll = std::make_shared<PollState>();
  const auto forget = [this, poll, worker = request->worker()] {
    poll->ended = true;
    if (poll->id != 0) core_->dispatcher.Forget(worker, poll->id);
  };
  grpc::ServerUnaryReactor* reactor = nullptr;
  const std::shared_ptr<HeldUnary> call = HeldUnary::Start(core_, forget, &reactor);
  const absl::Duration wait =
      absl::Seconds(request->wait().seconds()) + absl::Nanoseconds(request->wait().nanos());
  core_->pool.Run([this, call, poll, forget, worker = request->worker(), wait, response] {
    const auto answer = [this, call,
                         response](absl::StatusOr<std::optional<JobTable::Leased>> leased) {
      return call->Finish([&]() -> absl::Status {
        KILN_RETURN_IF_ERROR(leased.status());
        if (!leased->has_value()) return absl::OkStatus();
        return FillLease(**leased, response->mutable_lease());
      });
    };
    poll->id = core_->dispatcher.Poll(worker, wait, answer);
    if (poll->ended) forget();
  });
  return reactor;
}

grpc::ServerUnaryReactor* WorkerService::Heartbeat(Context* context,
                                                   const v1::HeartbeatRequest* request,
                                                   v1::HeartbeatResponse* response) {
  return Offload(core_, context, [=, this]() -> absl::Status {
    KILN_RETURN_IF_ERROR(core_->roster.Touch(request->worker()));
    if (request->job().empty()) return absl::OkStatus();
    KILN_ASSIGN_OR_RETURN(const Progress progress, wire::FromWire(request->progress()));
    KILN_ASSIGN_OR_RETURN(
        const JobTable::Directive directive,
        core_->jobs.Heartbeat(request->job(), request->worker(), request->lease_epoch(), progress));
    response->set_cancel(directive.cancel);
    if (directive.budget) wire::ToWire(*directive.budget, response->mutable_budget());
    return absl::OkStatus();
  });
}

grpc::ServerUnaryReactor* WorkerService::ReportOutcomes(Context* context,
                                                        const v1::ReportOutcomesRequest* request,
                                                        v1::ReportOutcomesResponse*) {
  return Offload(core_, context, [=, this]() -> absl::Status {
    if (request->outcomes_size() > kMaxOutcomes) {
      return InvalidField("TOO_MANY", "outcomes", absl::StrCat(request->outcomes_size()),
                          "too many", absl::StrCat("0..", kMaxOutcomes));
    }
    std::vector<Outcome> outcomes;
    for (int i = 0; i < request->outcomes_size(); ++i) {
      KILN_ASSIGN_OR_RETURN(
          Outcome outcome, wire::FromWire(request->outcomes(i), absl::StrCat("outcomes[", i, "]")));
      outcomes.push_back(std::move(outcome));
    }
    // A fact is taken from whoever brings it; that it is also a sign of life holds only for those
    // who are registered.
    if (absl::Status known = core_->roster.Touch(request->worker());
        !known.ok() && !absl::IsNotFound(known)) {
      return known;
    }
    return core_->jobs.ReportOutcomes(request->job(), request->lease_epoch(), outcomes);
  });
}

grpc::ServerUnaryReactor* WorkerService::CompleteJob(Context* context,
                                                     const v1::CompleteJobRequest* request,
                                                     v1::CompleteJobResponse* response) {
  return Offload(core_, context, [=, this]() -> absl::Status {
    KILN_ASSIGN_OR_RETURN(Conclusion conclusion, ConclusionOf(*request));
    KILN_ASSIGN_OR_RETURN(const std::string record,
                          core_->publisher.Conclude(request->job(), request->worker(),
                                                    request->lease_epoch(), std::move(conclusion)));
    response->set_record(wire::RecordName(record));
    core_->roster.CountDone(request->worker());
    return absl::OkStatus();
  });
}

grpc::ServerUnaryReactor* WorkerService::ReleaseJob(Context* context,
                                                    const v1::ReleaseJobRequest* request,
                                                    v1::ReleaseJobResponse*) {
  return Offload(core_, context, [=, this]() -> absl::Status {
    KILN_RETURN_IF_ERROR(
        core_->jobs.ReleaseLease(request->job(), request->worker(), request->lease_epoch()));
    Log(Level::kInfo,
        absl::StrCat(request->worker(), " hands back ", request->job(), ": ", request->reason()));
    // It goes: its next poll, if one comes, is another worker's business.
    core_->roster.SetDraining(request->worker(), true);
    core_->pool.Run([this] { core_->dispatcher.JobQueued(); });
    return absl::OkStatus();
  });
}

}  // namespace kiln::server
