// SPDX-License-Identifier: Apache-2.0
// A whole server on a loopback port over a store in memory, with a client and workers in this
// process.
#pragma once

#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "google/longrunning/operations.grpc.pb.h"
#include "kiln/v1/artifact.grpc.pb.h"
#include "kiln/v1/kiln.grpc.pb.h"
#include "kiln/v1/worker.grpc.pb.h"
#include "proto/contract/error.h"
#include "server/server.h"
#include "tests/server/samples.h"
#include "tests/support/store_fake.h"

namespace kiln::server {

namespace lro = google::longrunning;

// A worker that does what a test says.
class FakeWorker {
 public:
  FakeWorker(const std::shared_ptr<grpc::Channel>& channel, std::string name,
             DeviceFingerprint device = CpuDevice());

  absl::StatusOr<v1::RegisterResponse> Register(const std::string& job = "", int64_t epoch = 0);
  // Polls up to `seconds`.
  absl::StatusOr<v1::LeaseJobResponse> Poll(double seconds = 5);
  absl::StatusOr<v1::HeartbeatResponse> Heartbeat(const v1::Lease& lease,
                                                  const std::string& phase = "searching",
                                                  int64_t done = 0);
  absl::Status Report(const v1::Lease& lease, const std::vector<Outcome>& outcomes);
  absl::Status Upload(const Artifact& artifact, bool* stored_before = nullptr);
  // A good record of the leased job.
  Record RecordOf(const v1::Lease& lease, double median_ns = 1000) const;
  absl::StatusOr<std::string> Complete(const v1::Lease& lease, const Record& record);
  absl::StatusOr<std::string> Fail(const v1::Lease& lease, const std::string& reason,
                                   const std::string& message);
  absl::Status Release(const v1::Lease& lease);
  // The whole of it: lease, artifacts, an outcome, completion. Returns the record's name.
  absl::StatusOr<std::string> RunOne(double median_ns = 1000);

  const std::string& name() const { return name_; }

 private:
  absl::StatusOr<std::string> Complete(v1::CompleteJobRequest request);
  const std::string name_;
  const DeviceFingerprint device_;
  std::unique_ptr<v1::WorkerService::Stub> stub_;
  std::unique_ptr<v1::ArtifactService::Stub> artifacts_;
};

class ServiceTest : public ::testing::Test {
 protected:
  ServiceTest();
  ~ServiceTest() override;
  void StartServer();
  void StopServer();

  v1::TuneScheduleRequest TuneRequest(int64_t m = 64, int64_t n = 48, int64_t k = 32) const;
  absl::StatusOr<lro::Operation> Tune(const v1::TuneScheduleRequest& request,
                                      const std::string& client = "alice");
  absl::StatusOr<lro::Operation> Wait(const std::string& operation, double seconds);
  absl::StatusOr<lro::Operation> GetOperation(const std::string& operation);
  absl::Status Cancel(const std::string& operation);
  absl::StatusOr<v1::GetScheduleResponse> Get(const v1::GetScheduleRequest& request);
  v1::GetScheduleRequest GetRequest(int64_t m = 64, int64_t n = 48, int64_t k = 32) const;
  v1::Job JobOf(const lro::Operation& operation) const;
  v1::TuneScheduleResponse ResponseOf(const lro::Operation& operation) const;
  std::unique_ptr<FakeWorker> MakeWorker(const std::string& name = "workers/a", int threads = 2);
  // Until `condition` holds; fails the test after 20 s.
  void Await(const std::function<bool()>& condition, const char* what);
  static std::unique_ptr<grpc::ClientContext> Context(const std::string& client = "alice",
                                                      double seconds = 30);

  Options options_;
  SystemClock clock_;
  db::StoreFake store_;
  FamilyMatcher match_;
  std::unique_ptr<Server> server_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<v1::KilnService::Stub> kiln_;
  std::unique_ptr<lro::Operations::Stub> operations_;
  std::unique_ptr<v1::ArtifactService::Stub> artifacts_;
};

// Reason and detail of an error, for expectations.
std::string ReasonOf(const absl::Status& status);
std::string DetailOf(const absl::Status& status, const std::string& name);

}  // namespace kiln::server
