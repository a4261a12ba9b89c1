// SPDX-License-Identifier: Apache-2.0
#include "tests/server/service_fixture.h"

#include <thread>

#include "absl/strings/str_cat.h"
#include "proto/wire.h"

namespace kiln::server {
namespace {

// The message by reference: it is filled by the call that gives the status, in whatever order they
// are evaluated.
template <typename T>
absl::StatusOr<T> Result(const grpc::Status& status, const T& message) {
  if (!status.ok()) return wire::FromGrpc(status);
  return message;
}

}  // namespace

std::string ReasonOf(const absl::Status& status) { return GetErrorInfo(status).reason; }
std::string DetailOf(const absl::Status& status, const std::string& name) {
  return GetErrorInfo(status).details[name];
}

// --- worker ---

FakeWorker::FakeWorker(const std::shared_ptr<grpc::Channel>& channel, std::string name,
                       DeviceFingerprint device)
    : name_(std::move(name)),
      device_(std::move(device)),
      stub_(v1::WorkerService::NewStub(channel)),
      artifacts_(v1::ArtifactService::NewStub(channel)) {}

absl::StatusOr<v1::RegisterResponse> FakeWorker::Register(const std::string& job, int64_t epoch) {
  grpc::ClientContext context;
  v1::RegisterRequest request;
  v1::RegisterResponse response;
  request.set_name(name_);
  request.set_host("host");
  request.set_pid(1);
  wire::ToWire(device_, request.mutable_device());
  request.set_toolchain("g++ 12.2.0");
  request.set_emitter("cpu-c++/1");
  request.set_method_version(1);
  request.set_job(job);
  request.set_lease_epoch(epoch);
  return Result(stub_->Register(&context, request, &response), response);
}

absl::StatusOr<v1::LeaseJobResponse> FakeWorker::Poll(double seconds) {
  grpc::ClientContext context;
  v1::LeaseJobRequest request;
  v1::LeaseJobResponse response;
  request.set_worker(name_);
  request.mutable_wait()->set_seconds(static_cast<int64_t>(seconds));
  request.mutable_wait()->set_nanos(
      static_cast<int32_t>((seconds - static_cast<int64_t>(seconds)) * 1e9));
  return Result(stub_->LeaseJob(&context, request, &response), response);
}

absl::StatusOr<v1::HeartbeatResponse> FakeWorker::Heartbeat(const v1::Lease& lease,
                                                            const std::string& phase,
                                                            int64_t done) {
  grpc::ClientContext context;
  v1::HeartbeatRequest request;
  v1::HeartbeatResponse response;
  request.set_worker(name_);
  request.set_job(lease.job());
  request.set_lease_epoch(lease.epoch());
  request.mutable_progress()->set_phase(phase);
  request.mutable_progress()->set_done(done);
  request.mutable_progress()->set_total(200);
  return Result(stub_->Heartbeat(&context, request, &response), response);
}

absl::Status FakeWorker::Report(const v1::Lease& lease, const std::vector<Outcome>& outcomes) {
  grpc::ClientContext context;
  v1::ReportOutcomesRequest request;
  v1::ReportOutcomesResponse response;
  request.set_worker(name_);
  request.set_job(lease.job());
  request.set_lease_epoch(lease.epoch());
  for (const Outcome& outcome : outcomes) wire::ToWire(outcome, request.add_outcomes());
  return wire::FromGrpc(stub_->ReportOutcomes(&context, request, &response));
}

absl::Status FakeWorker::Upload(const Artifact& artifact, bool* stored_before) {
  grpc::ClientContext context;
  v1::WriteArtifactResponse response;
  auto writer = artifacts_->WriteArtifact(&context, &response);
  v1::WriteArtifactRequest request;
  request.set_digest(artifact.digest);
  request.set_media(artifact.media);
  request.set_size(static_cast<int64_t>(artifact.bytes.size()));
  bool open = writer->Write(request);
  for (size_t at = 0; open && at < artifact.bytes.size(); at += 1 << 20) {
    v1::WriteArtifactRequest chunk;
    chunk.set_chunk(artifact.bytes.substr(at, 1 << 20));
    open = writer->Write(chunk);
  }
  writer->WritesDone();
  absl::Status status = wire::FromGrpc(writer->Finish());
  if (stored_before != nullptr) *stored_before = response.stored_before();
  return status;
}

Record FakeWorker::RecordOf(const v1::Lease& lease, double median_ns) const {
  const absl::StatusOr<WorkloadSpec> spec = wire::FromWire(lease.spec());
  const absl::StatusOr<Workload> workload = CheckWorkload(*spec);
  Job job = Proposal(*workload, device_);
  return RecordFor(job, *workload, median_ns);
}

absl::StatusOr<std::string> FakeWorker::Complete(v1::CompleteJobRequest request) {
  grpc::ClientContext context;
  v1::CompleteJobResponse response;
  request.set_worker(name_);
  const grpc::Status status = stub_->CompleteJob(&context, request, &response);
  return Result(status, response.record());
}

absl::StatusOr<std::string> FakeWorker::Complete(const v1::Lease& lease, const Record& record) {
  v1::CompleteJobRequest request;
  request.set_job(lease.job());
  request.set_lease_epoch(lease.epoch());
  wire::ToWire(record, request.mutable_record());
  return Complete(std::move(request));
}

absl::StatusOr<std::string> FakeWorker::Fail(const v1::Lease& lease, const std::string& reason,
                                             const std::string& message) {
  v1::CompleteJobRequest request;
  request.set_job(lease.job());
  request.set_lease_epoch(lease.epoch());
  request.mutable_failure()->set_code(static_cast<int>(absl::StatusCode::kInternal));
  request.mutable_failure()->set_reason(reason);
  request.mutable_failure()->set_message(message);
  return Complete(std::move(request));
}

absl::Status FakeWorker::Release(const v1::Lease& lease) {
  grpc::ClientContext context;
  v1::ReleaseJobRequest request;
  v1::ReleaseJobResponse response;
  request.set_worker(name_);
  request.set_job(lease.job());
  request.set_lease_epoch(lease.epoch());
  request.set_reason("drain");
  return wire::FromGrpc(stub_->ReleaseJob(&context, request, &response));
}

absl::StatusOr<std::string> FakeWorker::RunOne(double median_ns) {
  KILN_ASSIGN_OR_RETURN(const v1::LeaseJobResponse response, Poll());
  if (!response.has_lease()) return absl::NotFoundError("no job came");
  KILN_RETURN_IF_ERROR(
      Report(response.lease(), {Measured(response.lease().first_sequence(), median_ns)}));
  KILN_RETURN_IF_ERROR(Upload(CompiledKernel()));
  KILN_RETURN_IF_ERROR(Upload(KernelSource()));
  return Complete(response.lease(), RecordOf(response.lease(), median_ns));
}

// --- server and client ---

ServiceTest::ServiceTest() {
  options_.listen = "127.0.0.1:0";
  options_.worker_grace = absl::ZeroDuration();
  options_.drain = absl::Seconds(2);
  options_.cache_bytes = 16 << 20;
  options_.read_ahead = false;  // tests ask how a lookup was answered
  match_ = [](const Workload&, const DeviceFingerprint&, std::map<std::string, std::string>*) {
    return absl::OkStatus();
  };
  StartServer();
}

ServiceTest::~ServiceTest() { StopServer(); }

void ServiceTest::StartServer() {
  absl::StatusOr<std::unique_ptr<Server>> server =
      Server::Start(options_, &store_, &clock_, match_);
  ASSERT_TRUE(server.ok()) << server.status();
  server_ = *std::move(server);
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  channel_ =
      grpc::CreateCustomChannel(server_->address(), grpc::InsecureChannelCredentials(), arguments);
  kiln_ = v1::KilnService::NewStub(channel_);
  operations_ = lro::Operations::NewStub(channel_);
  artifacts_ = v1::ArtifactService::NewStub(channel_);
}

void ServiceTest::StopServer() {
  if (server_ == nullptr) return;
  EXPECT_EQ(server_->core()->jobs.CheckInvariants(), "");
  server_->Stop();
  server_.reset();
}

std::unique_ptr<grpc::ClientContext> ServiceTest::Context(const std::string& client,
                                                          double seconds) {
  auto context = std::make_unique<grpc::ClientContext>();
  context->AddMetadata("kiln-client", client);
  context->set_deadline(std::chrono::system_clock::now() +
                        std::chrono::milliseconds(static_cast<int64_t>(seconds * 1000)));
  return context;
}

v1::TuneScheduleRequest ServiceTest::TuneRequest(int64_t m, int64_t n, int64_t k) const {
  v1::TuneScheduleRequest request;
  wire::ToWire(MatMulSpec(m, n, k), request.mutable_selection()->mutable_workload());
  request.mutable_selection()->set_device("cpu");
  return request;
}

v1::GetScheduleRequest ServiceTest::GetRequest(int64_t m, int64_t n, int64_t k) const {
  v1::GetScheduleRequest request;
  *request.mutable_selection() = TuneRequest(m, n, k).selection();
  return request;
}

absl::StatusOr<lro::Operation> ServiceTest::Tune(const v1::TuneScheduleRequest& request,
                                                 const std::string& client) {
  lro::Operation operation;
  const grpc::Status status = kiln_->TuneSchedule(Context(client).get(), request, &operation);
  return Result(status, operation);
}

absl::StatusOr<lro::Operation> ServiceTest::Wait(const std::string& name, double seconds) {
  lro::WaitOperationRequest request;
  lro::Operation operation;
  request.set_name(name);
  request.mutable_timeout()->set_seconds(static_cast<int64_t>(seconds));
  request.mutable_timeout()->set_nanos(
      static_cast<int32_t>((seconds - static_cast<int64_t>(seconds)) * 1e9));
  const grpc::Status status =
      operations_->WaitOperation(Context("alice", seconds + 20).get(), request, &operation);
  return Result(status, operation);
}

absl::StatusOr<lro::Operation> ServiceTest::GetOperation(const std::string& name) {
  lro::GetOperationRequest request;
  lro::Operation operation;
  request.set_name(name);
  const grpc::Status status = operations_->GetOperation(Context().get(), request, &operation);
  return Result(status, operation);
}

absl::Status ServiceTest::Cancel(const std::string& name) {
  lro::CancelOperationRequest request;
  google::protobuf::Empty response;
  request.set_name(name);
  return wire::FromGrpc(operations_->CancelOperation(Context().get(), request, &response));
}

absl::StatusOr<v1::GetScheduleResponse> ServiceTest::Get(const v1::GetScheduleRequest& request) {
  v1::GetScheduleResponse response;
  const grpc::Status status = kiln_->GetSchedule(Context().get(), request, &response);
  return Result(status, response);
}

v1::Job ServiceTest::JobOf(const lro::Operation& operation) const {
  v1::TuneMetadata metadata;
  EXPECT_TRUE(operation.metadata().UnpackTo(&metadata));
  return metadata.job();
}

v1::TuneScheduleResponse ServiceTest::ResponseOf(const lro::Operation& operation) const {
  v1::TuneScheduleResponse response;
  EXPECT_TRUE(operation.done()) << operation.ShortDebugString();
  EXPECT_TRUE(operation.response().UnpackTo(&response)) << operation.ShortDebugString();
  return response;
}

std::unique_ptr<FakeWorker> ServiceTest::MakeWorker(const std::string& name, int threads) {
  auto worker = std::make_unique<FakeWorker>(channel_, name, CpuDevice(threads));
  const auto registered = worker->Register();
  EXPECT_TRUE(registered.ok()) << registered.status();
  return worker;
}

void ServiceTest::Await(const std::function<bool()>& condition, const char* what) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (!condition()) {
    ASSERT_LT(std::chrono::steady_clock::now(), deadline) << what;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

}  // namespace kiln::server
