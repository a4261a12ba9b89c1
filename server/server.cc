// SPDX-License-Identifier: Apache-2.0
#include "server/server.h"

#include <grpcpp/ext/proto_server_reflection_plugin.h>
#include <grpcpp/health_check_service_interface.h>
#include <grpcpp/resource_quota.h>
#include <grpcpp/server_builder.h>

#include <mutex>
#include <utility>

#include "absl/strings/match.h"
#include "server/answer_maker.h"
#include "server/answer_message.h"
#include "server/answers_version.h"
#include "server/artifact_service.h"
#include "server/kiln_service.h"
#include "server/log.h"
#include "server/metrics.h"
#include "server/operations_service.h"
#include "server/worker_service.h"

namespace kiln::server {
namespace {

constexpr int kMaxMessageBytes =
    32 << 20;  // of a request: a batch of programs, a report of outcomes with samples
constexpr int kMaxMetadataBytes = 32 << 10;

absl::Status CannotListen(const std::string& address) {
  return MakeError(
      absl::StatusCode::kUnavailable,
      absl::StrCat("--listen: cannot listen on ", address, "; is another process there?"),
      {"ADDRESS_IN_USE",
       {{"field", "--listen"}, {"value", address}, {"allowed", "HOST:PORT, HOST:0, unix:PATH"}}});
}

class RunningServer final : public Server {
 public:
  RunningServer(const Options& options, db::Store* store, const Clock* clock, FamilyMatcher match)
      : core_(options, store, clock, std::move(match)),
        answers_(store, kAnswersVersion, AnswerToKeep),
        messages_(&core_),
        kiln_(&core_, &messages_),
        operations_(&core_, &messages_),
        artifacts_(&core_),
        workers_(&core_) {}
  ~RunningServer() override { Stop(); }

  absl::Status Listen() {
    KILN_RETURN_IF_ERROR(core_.Start());
    const Options& options = core_.options;
    grpc::ServerBuilder builder;
    int port = 0;
    builder.AddListeningPort(options.listen, grpc::InsecureServerCredentials(), &port);
    builder.RegisterService(&kiln_);
    builder.RegisterService(&operations_);
    builder.RegisterService(&artifacts_);
    builder.RegisterService(&workers_);
    builder.SetMaxReceiveMessageSize(kMaxMessageBytes);
    builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT,
                               0);  // a second server on the port fails, and loudly
    builder.AddChannelArgument(GRPC_ARG_MAX_METADATA_SIZE, kMaxMetadataBytes);
    builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS,
                               static_cast<int>(options.max_held_calls));
    builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, 30'000);
    builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 10'000);
    builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
    builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, 5'000);
    builder.SetResourceQuota(
        grpc::ResourceQuota("kiln").Resize(static_cast<size_t>(options.rpc_memory_bytes)));
    server_ = builder.BuildAndStart();
    const bool is_unix = absl::StartsWith(options.listen, "unix:");
    if (server_ == nullptr || (!is_unix && port == 0)) return CannotListen(options.listen);
    address_ = is_unix
                   ? options.listen
                   : absl::StrCat(options.listen.substr(0, options.listen.rfind(':')), ":", port);
    if (!options.metrics_listen.empty()) {
      KILN_ASSIGN_OR_RETURN(metrics_, MetricsEndpoint::Start(options.metrics_listen, &core_));
    }
    SetHealth(true);
    MakeAnswers(absl::ZeroDuration());
    if (core_.options.read_ahead) ReadAhead();
    return absl::OkStatus();
  }

  const std::string& address() const override { return address_; }
  int metrics_port() const override { return metrics_ == nullptr ? 0 : metrics_->port(); }
  Core* core() override { return &core_; }

  void Stop() override {
    std::call_once(stopped_, [this] {
      if (server_ != nullptr) {
        SetHealth(false);
        const absl::Status stopping =
            MakeError(absl::StatusCode::kUnavailable,
                      "the server stops; ask again, jobs and operations are kept",
                      {"SERVER_STOPS", {{"retry_after_seconds", "2"}}});
        core_.dispatcher.Drain(stopping);
        core_.held.EndAll(stopping);
        server_->Shutdown(absl::ToChronoTime(absl::Now() + core_.options.drain));
        server_->Wait();
      }
      core_.jobs.Checkpoint();
      metrics_.reset();
      core_.pool.Stop();
    });
  }

 private:
  void MakeAnswers(absl::Duration pause) {
    core_.pool.RunAfter(pause, [this] { MakeAnswers(answers_.MakeSome()); });
  }

  void ReadAhead() {
    core_.pool.Run([this] {
      if (kiln_.ReadAhead()) ReadAhead();
    });
  }

  // Every name is registered: an unknown one is NOT_FOUND to whoever probes it.
  void SetHealth(bool serving) {
    auto* health = server_->GetHealthCheckService();
    if (health == nullptr) return;
    health->SetServingStatus(serving);
    for (const char* name : {"kiln.v1.KilnService", "kiln.v1.WorkerService",
                             "kiln.v1.ArtifactService", "google.longrunning.Operations"}) {
      health->SetServingStatus(name, serving);
    }
  }

  Core core_;
  AnswerMaker answers_;
  OperationMessages messages_;
  KilnService kiln_;
  OperationsService operations_;
  ArtifactService artifacts_;
  WorkerService workers_;
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<MetricsEndpoint> metrics_;
  std::string address_;
  std::once_flag stopped_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Server>> Server::Start(const Options& options, db::Store* store,
                                                      const Clock* clock, FamilyMatcher match) {
  static const bool plugins = [] {
    grpc::EnableDefaultHealthCheckService(true);
    grpc::reflection::InitProtoReflectionServerBuilderPlugin();
    return true;
  }();
  (void)plugins;
  auto server = std::make_unique<RunningServer>(options, store, clock, std::move(match));
  KILN_RETURN_IF_ERROR(server->Listen());
  return std::unique_ptr<Server>(std::move(server));
}

}  // namespace kiln::server
