// SPDX-License-Identifier: Apache-2.0
#include "worker/connection.h"

#include <grpcpp/grpcpp.h>
#include <unistd.h>

#include <algorithm>
#include <random>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/contract/error.h"
#include "proto/wire.h"
#include "worker/log.h"
#include "worker/measure/sampler.h"
#include "worker/version.h"

namespace kiln::worker {
namespace {

constexpr size_t kChunkBytes = 1 << 20;
constexpr int kMaxMessageBytes = 16 << 20;
constexpr absl::Duration kFirstPause = absl::Milliseconds(100), kLongestPause = absl::Seconds(5);

std::string HostName() {
  char name[256] = {};
  if (gethostname(name, sizeof name - 1) != 0 || name[0] == 0) return "unknown";
  return name;
}

std::shared_ptr<grpc::Channel> MakeChannel(const std::string& server) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 100);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 2000);
  arguments.SetMaxReceiveMessageSize(kMaxMessageBytes);
  return grpc::CreateCustomChannel(server, grpc::InsecureChannelCredentials(), arguments);
}

void SetDeadline(grpc::ClientContext* context, absl::Duration limit) {
  context->set_deadline(absl::ToChronoTime(absl::Now() + limit));
}

}  // namespace

bool IsUnknownWorker(const absl::Status& status) {
  return absl::IsNotFound(status) && GetErrorInfo(status).reason == "WORKER_UNKNOWN";
}

bool IsAway(const absl::Status& status) {
  return absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status);
}

Agent::Connection::Connection(AgentOptions options, const JobTools& tools, std::string name)
    : options_(std::move(options)), tools_(tools), name_(std::move(name)) {
  const std::shared_ptr<grpc::Channel> channel = MakeChannel(options_.server);
  workers_ = v1::WorkerService::NewStub(channel);
  artifacts_ = v1::ArtifactService::NewStub(channel);
}

absl::Duration Agent::Connection::heartbeat() const {
  std::lock_guard lock(mutex_);
  return heartbeat_;
}

absl::StatusOr<bool> Agent::Connection::Register(const HeldLease& held) {
  v1::RegisterRequest request;
  request.set_name(name_);
  request.set_host(HostName());
  request.set_pid(getpid());
  wire::ToWire(tools_.device, request.mutable_device());
  request.set_version(kVersion);
  request.set_toolchain(tools_.compiler->identity());
  request.set_timer(std::string(Print(Timer::kClock)));
  for (const std::string& family : tools_.frontend->families()) request.add_families(family);
  request.set_job(held.job);
  request.set_lease_epoch(held.epoch);
  request.set_emitter(tools_.frontend->emitter());
  request.set_method_version(kMethodVersion);
  grpc::ClientContext context;
  SetDeadline(&context, options_.call_limit);
  v1::RegisterResponse response;
  KILN_RETURN_IF_ERROR(wire::FromGrpc(workers_->Register(&context, request, &response)));
  const auto& interval = response.heartbeat_interval();
  std::lock_guard lock(mutex_);
  const absl::Duration heartbeat =
      absl::Seconds(interval.seconds()) + absl::Nanoseconds(interval.nanos());
  if (heartbeat > absl::ZeroDuration()) heartbeat_ = heartbeat;
  return response.keep_lease();
}

absl::StatusOr<v1::LeaseJobResponse> Agent::Connection::Lease() {
  v1::LeaseJobRequest request;
  request.set_worker(name_);
  request.mutable_wait()->set_seconds(absl::ToInt64Seconds(options_.poll));
  grpc::ClientContext context;
  SetDeadline(&context, options_.poll + options_.call_limit);
  {
    std::lock_guard lock(mutex_);
    if (stopped_) return absl::CancelledError("draining");
    polling_ = &context;
  }
  v1::LeaseJobResponse response;
  const grpc::Status status = workers_->LeaseJob(&context, request, &response);
  {
    std::lock_guard lock(mutex_);
    polling_ = nullptr;
  }
  KILN_RETURN_IF_ERROR(wire::FromGrpc(status));
  return response;
}

absl::StatusOr<v1::HeartbeatResponse> Agent::Connection::Heartbeat(
    const v1::HeartbeatRequest& request) {
  grpc::ClientContext context;
  SetDeadline(&context, options_.call_limit);
  v1::HeartbeatResponse response;
  KILN_RETURN_IF_ERROR(wire::FromGrpc(workers_->Heartbeat(&context, request, &response)));
  return response;
}

absl::Status Agent::Connection::ReportOutcomes(const v1::ReportOutcomesRequest& request) {
  grpc::ClientContext context;
  SetDeadline(&context, options_.call_limit);
  v1::ReportOutcomesResponse response;
  return wire::FromGrpc(workers_->ReportOutcomes(&context, request, &response));
}

absl::StatusOr<v1::CompleteJobResponse> Agent::Connection::Complete(
    const v1::CompleteJobRequest& request) {
  grpc::ClientContext context;
  SetDeadline(&context, 3 * options_.call_limit);  // a durable write of everything
  v1::CompleteJobResponse response;
  KILN_RETURN_IF_ERROR(wire::FromGrpc(workers_->CompleteJob(&context, request, &response)));
  return response;
}

absl::Status Agent::Connection::Release(const v1::ReleaseJobRequest& request) {
  grpc::ClientContext context;
  SetDeadline(&context, options_.call_limit);
  v1::ReleaseJobResponse response;
  return wire::FromGrpc(workers_->ReleaseJob(&context, request, &response));
}

absl::Status Agent::Connection::WriteArtifact(const Artifact& artifact) {
  grpc::ClientContext context;
  SetDeadline(&context, 6 * options_.call_limit);
  v1::WriteArtifactResponse response;
  const auto writer = artifacts_->WriteArtifact(&context, &response);
  v1::WriteArtifactRequest request;
  request.set_digest(artifact.digest);
  request.set_media(artifact.media);
  request.set_size(static_cast<int64_t>(artifact.bytes.size()));
  size_t sent = 0;
  do {
    const size_t chunk = std::min(kChunkBytes, artifact.bytes.size() - sent);
    request.set_chunk(artifact.bytes.substr(sent, chunk));
    // A stream that was ended early has its answer: stored before, or refused.
    if (!writer->Write(request)) break;
    request.Clear();
    sent += chunk;
  } while (sent < artifact.bytes.size());
  writer->WritesDone();
  return wire::FromGrpc(writer->Finish());
}

absl::StatusOr<std::string> Agent::Connection::ReadArtifact(const std::string& digest) {
  grpc::ClientContext context;
  SetDeadline(&context, 6 * options_.call_limit);
  v1::ReadArtifactRequest request;
  request.set_digest(digest);
  const auto reader = artifacts_->ReadArtifact(&context, request);
  std::string bytes;
  for (v1::ReadArtifactResponse response; reader->Read(&response);) bytes += response.chunk();
  KILN_RETURN_IF_ERROR(wire::FromGrpc(reader->Finish()));
  if (Sha256Hex(bytes) != digest)
    return absl::DataLossError(absl::StrCat("artifact ", digest, ": other bytes arrived"));
  return bytes;
}

absl::Status Agent::Connection::Persist(const HeldLease& held,
                                        const std::function<absl::Status()>& call,
                                        const std::function<bool()>& stop) {
  absl::Duration pause = kFirstPause;
  while (true) {
    absl::Status status = call();
    if (IsUnknownWorker(status)) {
      const absl::StatusOr<bool> kept = Register(held);
      if (kept.ok() && !*kept && !held.job.empty())
        return absl::AbortedError("the lease has gone to another worker");
      if (kept.ok()) continue;
      status = kept.status();
    }
    if (!IsAway(status) || (stop && stop())) return status;
    Pause(pause);
    pause = std::min(2 * pause, kLongestPause);
  }
}

void Agent::Connection::Stop() {
  std::lock_guard lock(mutex_);
  stopped_ = true;
  if (polling_ != nullptr) polling_->TryCancel();
  changed_.notify_all();
}

bool Agent::Connection::stopped() const {
  std::lock_guard lock(mutex_);
  return stopped_;
}

void Agent::Connection::Pause(absl::Duration duration) {
  thread_local std::minstd_rand random(std::random_device{}());
  const double share = std::uniform_real_distribution<double>(0.75, 1.25)(random);
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, absl::ToChronoNanoseconds(duration * share), [this] { return stopped_; });
}

}  // namespace kiln::worker
