// SPDX-License-Identifier: Apache-2.0
#include "tests/client/fake_server.h"

#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "proto/contract/error.h"
#include "proto/wire.h"

namespace kiln::client {
namespace {

constexpr char kOperation[] = "operations/00000000000000aa";
constexpr char kJob[] = "jobs/00000000000000bb";

Argument TensorAt(int index) { return {.kind = ArgumentKind::kTensor, .index = index}; }
Argument Integer(int64_t value) { return {.kind = ArgumentKind::kScalar, .integer = value}; }

// Checked once per selection: a batch asks for the same one a thousand times.
absl::StatusOr<std::string> SignatureOf(const v1::Selection& selection) {
  static std::mutex mutex;
  static auto* const known = new std::map<std::string, absl::StatusOr<std::string>>;
  const std::string key = selection.SerializeAsString();
  const std::lock_guard<std::mutex> lock(mutex);
  if (const auto found = known->find(key); found != known->end()) return found->second;
  const auto check = [&selection]() -> absl::StatusOr<std::string> {
    KILN_ASSIGN_OR_RETURN(const WorkloadSpec spec, wire::FromWire(selection.workload()));
    KILN_ASSIGN_OR_RETURN(const Workload workload, CheckWorkload(spec));
    return workload.signature;
  };
  return known->emplace(key, check()).first->second;
}

Job JobOf(const Record& record) {
  Job job;
  job.name = kJob;
  job.key = record.key;
  job.spec = record.spec;
  job.device = record.device;
  job.state = JobState::kRunning;
  job.operations = 1;
  job.created = absl::FromUnixSeconds(1'700'000'000);
  return job;
}

google::longrunning::Operation OperationOf(const std::string& name, const Job& job) {
  google::longrunning::Operation operation;
  operation.set_name(name);
  v1::TuneMetadata metadata;
  wire::ToWire(job, metadata.mutable_job());
  operation.mutable_metadata()->PackFrom(metadata);
  return operation;
}

}  // namespace

const std::string& KernelArtifact() {
  static const std::string bytes = [] {
    std::ifstream file(KILN_TEST_KERNELS, std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(file), {});
  }();
  return bytes;
}

const std::string& KernelArtifactDigest() {
  static const std::string digest = Sha256Hex(KernelArtifact());
  return digest;
}

FakeProduct MakeProduct(int64_t m, int64_t n, int64_t k, const std::string& entry) {
  FakeProduct product;
  product.spec.program =
      "operator MatMul(M, N, K) { input A[M,K], B[K,N]; output C[M,N] = sum(A[i,k] * B[k,j]); }";
  product.spec.dims = {{"M", {m, m}}, {"N", {n, n}}, {"K", {k, k}}};
  const absl::StatusOr<Workload> workload = CheckWorkload(product.spec);
  Record& record = product.record;
  record.id = "rec-00000000000000cc";
  record.device.architecture = "x86-64";
  record.device.model = "a test's";
  record.device.cores = record.device.threads = 2;
  record.key = {workload->signature, DeviceId(record.device), {}, 0};
  record.canonical = workload->canonical;
  record.spec = product.spec;
  record.schedule = {"contraction", 1, {{"mr", 6}, {"nr", 16}}};
  Step step;
  step.entry = entry;
  step.grid[0].value = 4;
  step.artifact = KernelArtifactDigest();
  step.arguments = {TensorAt(0), TensorAt(1), TensorAt(2), Integer(m), Integer(n), Integer(k)};
  record.plan.steps = {step};
  for (const int64_t elements : {m * k, k * n, m * n})
    record.plan.tensors.push_back({16, 4 * elements});
  record.artifacts = {KernelArtifactDigest()};
  record.measurement.samples = 30;
  record.measurement.median_ns = 1234.5;
  record.measurement.ci95_lo_ns = 1200;
  record.measurement.ci95_hi_ns = 1300;
  record.measurement.method_version = 1;
  record.verification = {"f64-reference/1", 6, 1e-7, 1e-5, 1, {"random"}};
  record.baseline = {"openblas 0.3.21 zen", 1500, 1.21};
  record.toolchain = "g++ 12.2.0";
  record.emitter = "cpu-c++/1";
  record.job = kJob;
  record.trials = {{"measured", 37}, {"mismatch", 2}, {"compile", 1}};
  record.created = absl::FromUnixSeconds(1'700'000'000);
  return product;
}

google::longrunning::Operation RunningOperation(const std::string& name, int64_t done,
                                                int64_t total) {
  Job job = JobOf(MakeProduct(4, 4, 4).record);
  job.progress.phase = "searching";
  job.progress.done = done;
  job.progress.total = total;
  return OperationOf(name, job);
}

google::longrunning::Operation DoneOperation(const std::string& name, const Record& record) {
  Job job = JobOf(record);
  job.state = JobState::kSucceeded;
  google::longrunning::Operation operation = OperationOf(name, job);
  operation.set_done(true);
  v1::TuneScheduleResponse response;
  response.set_match(v1::MATCH_EXACT);
  response.set_job(kJob);
  wire::ToWire(record, response.mutable_record());
  operation.mutable_response()->PackFrom(response);
  return operation;
}

google::longrunning::Operation FailedOperation(const std::string& name, const absl::Status& error) {
  Job job = JobOf(MakeProduct(4, 4, 4).record);
  job.state = JobState::kFailed;
  google::longrunning::Operation operation = OperationOf(name, job);
  operation.set_done(true);
  wire::ToWire(error, operation.mutable_error());
  return operation;
}

class FakeServer::Kiln final : public v1::KilnService::Service {
 public:
  explicit Kiln(FakeServer* fake) : fake_(*fake) {}

  grpc::Status GetSchedule(grpc::ServerContext*, const v1::GetScheduleRequest* request,
                           v1::GetScheduleResponse* response) override {
    ++fake_.lookups;
    absl::Status failure;
    if (fake_.TakeFailure(&failure)) return wire::ToGrpc(failure);
    return wire::ToGrpc(Answer(request->selection(), response));
  }

  grpc::Status BatchGetSchedules(grpc::ServerContext*, const v1::BatchGetSchedulesRequest* request,
                                 v1::BatchGetSchedulesResponse* response) override {
    ++fake_.lookups;
    for (const auto& one : request->requests()) {
      auto* item = response->add_items();
      const absl::Status status = Answer(one.selection(), item->mutable_response());
      if (absl::IsNotFound(status)) {
        item->mutable_response()->set_match(v1::MATCH_NONE);
      } else if (!status.ok()) {
        wire::ToWire(status, item->mutable_status());
      }
    }
    return grpc::Status::OK;
  }

  grpc::Status TuneSchedule(grpc::ServerContext*, const v1::TuneScheduleRequest* request,
                            google::longrunning::Operation* response) override {
    ++fake_.tunes;
    absl::Status failure;
    if (fake_.TakeFailure(&failure)) return wire::ToGrpc(failure);
    v1::GetScheduleResponse found;
    if (!request->force() && Answer(request->selection(), &found).ok()) {
      const absl::StatusOr<Record> record = wire::FromWire(found.record());
      *response = DoneOperation(kOperation, *record);
    } else {
      *response = RunningOperation(kOperation, 0, 10);
    }
    return grpc::Status::OK;
  }

  grpc::Status WatchOperation(grpc::ServerContext* context,
                              const v1::WatchOperationRequest* request,
                              grpc::ServerWriter<google::longrunning::Operation>* writer) override {
    ++fake_.watches;
    WatchScript script;
    bool scripted = false;
    {
      const std::lock_guard<std::mutex> lock(fake_.mutex_);
      scripted = !fake_.watch_scripts_.empty();
      if (scripted) {
        script = fake_.watch_scripts_.front();
        fake_.watch_scripts_.pop_front();
      }
    }
    if (!scripted) {
      writer->Write(RunningOperation(request->name(), 3, 10));
      while (!context->IsCancelled() && !fake_.stopping_) absl::SleepFor(absl::Milliseconds(2));
      return wire::ToGrpc(absl::UnavailableError("the server stops"));
    }
    for (const auto& message : script.messages) writer->Write(message);
    return wire::ToGrpc(script.end);
  }

  grpc::Status ListRecords(grpc::ServerContext*, const v1::ListRecordsRequest* request,
                           v1::ListRecordsResponse* response) override {
    const std::lock_guard<std::mutex> lock(fake_.mutex_);
    // One per page, so that the client has to turn them.
    const size_t at = request->page_token().empty() ? 0 : std::stoul(request->page_token());
    if (at < fake_.records_.size()) wire::ToWire(fake_.records_[at], response->add_records());
    if (at + 1 < fake_.records_.size()) response->set_next_page_token(std::to_string(at + 1));
    return grpc::Status::OK;
  }

  grpc::Status GetRecord(grpc::ServerContext*, const v1::GetRecordRequest* request,
                         v1::Record* response) override {
    const std::lock_guard<std::mutex> lock(fake_.mutex_);
    for (const Record& record : fake_.records_) {
      if (wire::RecordName(record.id) != request->name()) continue;
      wire::ToWire(record, response);
      return grpc::Status::OK;
    }
    return wire::ToGrpc(MakeError(absl::StatusCode::kNotFound, absl::StrCat("no ", request->name()),
                                  {"RECORD_UNKNOWN", {}}));
  }

  grpc::Status ListJobs(grpc::ServerContext*, const v1::ListJobsRequest*,
                        v1::ListJobsResponse* response) override {
    const std::lock_guard<std::mutex> lock(fake_.mutex_);
    for (const Job& job : fake_.jobs_) wire::ToWire(job, response->add_jobs());
    return grpc::Status::OK;
  }

  grpc::Status GetJob(grpc::ServerContext*, const v1::GetJobRequest* request,
                      v1::Job* response) override {
    const std::lock_guard<std::mutex> lock(fake_.mutex_);
    for (const Job& job : fake_.jobs_) {
      if (job.name != request->name() && request->name() != kOperation) continue;
      wire::ToWire(job, response);
      return grpc::Status::OK;
    }
    return wire::ToGrpc(MakeError(absl::StatusCode::kNotFound,
                                  absl::StrCat("no job ", request->name()), {"JOB_UNKNOWN", {}}));
  }

  grpc::Status ListWorkers(grpc::ServerContext*, const v1::ListWorkersRequest*,
                           v1::ListWorkersResponse* response) override {
    v1::Worker* worker = response->add_workers();
    worker->set_name("workers/test");
    worker->set_state("idle");
    wire::ToWire(MakeProduct(4, 4, 4).record.device, worker->mutable_device());
    return grpc::Status::OK;
  }

 private:
  absl::Status Answer(const v1::Selection& selection, v1::GetScheduleResponse* response) {
    KILN_ASSIGN_OR_RETURN(const std::string signature, SignatureOf(selection));
    const std::lock_guard<std::mutex> lock(fake_.mutex_);
    for (const Record& record : fake_.records_) {
      if (record.key.signature != signature) continue;
      response->set_match(v1::MATCH_EXACT);
      response->set_job(record.job);
      response->set_lookup_ns(5000);
      wire::ToWire(record, response->mutable_record());
      return absl::OkStatus();
    }
    return MakeError(absl::StatusCode::kNotFound, absl::StrCat("nothing is stored for ", signature),
                     {"NOT_TUNED", {{"signature", signature}}});
  }

  FakeServer& fake_;
};

class FakeServer::Artifacts final : public v1::ArtifactService::Service {
 public:
  explicit Artifacts(FakeServer* fake) : fake_(*fake) {}

  grpc::Status ReadArtifact(grpc::ServerContext*, const v1::ReadArtifactRequest* request,
                            grpc::ServerWriter<v1::ReadArtifactResponse>* writer) override {
    ++fake_.artifact_reads;
    std::string bytes;
    {
      const std::lock_guard<std::mutex> lock(fake_.mutex_);
      const auto found = fake_.artifacts_.find(request->digest());
      if (found == fake_.artifacts_.end()) {
        return wire::ToGrpc(MakeError(absl::StatusCode::kNotFound,
                                      absl::StrCat("no artifact ", request->digest()),
                                      {"ARTIFACT_UNKNOWN", {}}));
      }
      bytes = found->second;
    }
    int64_t sent = 0;
    for (size_t at = request->offset(); at < bytes.size(); at += fake_.chunk_bytes) {
      const int64_t limit = fake_.break_read_after;
      if (limit >= 0 && sent >= limit) {
        fake_.break_read_after = -1;
        return wire::ToGrpc(absl::UnavailableError("broken off"));
      }
      v1::ReadArtifactResponse response;
      response.set_chunk(bytes.substr(at, fake_.chunk_bytes));
      sent += static_cast<int64_t>(response.chunk().size());
      writer->Write(response);
    }
    return grpc::Status::OK;
  }

 private:
  FakeServer& fake_;
};

class FakeServer::Operations final : public google::longrunning::Operations::Service {
 public:
  explicit Operations(FakeServer* fake) : fake_(*fake) {}

  grpc::Status CancelOperation(grpc::ServerContext*,
                               const google::longrunning::CancelOperationRequest*,
                               google::protobuf::Empty*) override {
    ++fake_.cancels;
    return grpc::Status::OK;
  }

 private:
  FakeServer& fake_;
};

FakeServer::FakeServer()
    : kiln_(std::make_unique<Kiln>(this)),
      artifacts_service_(std::make_unique<Artifacts>(this)),
      operations_(std::make_unique<Operations>(this)) {
  std::string pattern = (std::filesystem::temp_directory_path() / "kiln-fake-XXXXXX").string();
  folder_ = mkdtemp(pattern.data()) != nullptr ? pattern : "";
  address_ = absl::StrCat("unix:", folder_, "/socket");
  StoreArtifact(KernelArtifactDigest(), KernelArtifact());
  Start();
}

FakeServer::~FakeServer() {
  Stop();
  std::error_code error;
  std::filesystem::remove_all(folder_, error);
}

void FakeServer::Start() {
  stopping_ = false;
  grpc::ServerBuilder builder;
  builder.AddListeningPort(address_, grpc::InsecureServerCredentials());
  builder.RegisterService(kiln_.get());
  builder.RegisterService(artifacts_service_.get());
  builder.RegisterService(operations_.get());
  server_ = builder.BuildAndStart();
}

void FakeServer::Stop() {
  if (server_ == nullptr) return;
  stopping_ = true;
  server_->Shutdown(std::chrono::system_clock::now());
  server_.reset();
}

void FakeServer::Store(const Record& record) {
  const std::lock_guard<std::mutex> lock(mutex_);
  records_.push_back(record);
}

void FakeServer::StoreArtifact(const std::string& digest, const std::string& bytes) {
  const std::lock_guard<std::mutex> lock(mutex_);
  artifacts_[digest] = bytes;
}

void FakeServer::StoreJob(const Job& job) {
  const std::lock_guard<std::mutex> lock(mutex_);
  jobs_.push_back(job);
}

void FakeServer::AddWatch(WatchScript script) {
  const std::lock_guard<std::mutex> lock(mutex_);
  watch_scripts_.push_back(std::move(script));
}

void FakeServer::AddFailure(const absl::Status& status) {
  const std::lock_guard<std::mutex> lock(mutex_);
  failures_.push_back(status);
}

bool FakeServer::TakeFailure(absl::Status* status) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (failures_.empty()) return false;
  *status = failures_.front();
  failures_.pop_front();
  return true;
}

}  // namespace kiln::client
