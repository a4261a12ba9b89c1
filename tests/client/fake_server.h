// SPDX-License-Identifier: Apache-2.0
// A server in this process that says what a test tells it to: stored records, scripted jobs,
// artifacts in chunks, errors. For the client's tests. Its handlers run on gRPC's threads; a test
// sets it up before it calls.
#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "google/longrunning/operations.grpc.pb.h"
#include "grpcpp/grpcpp.h"
#include "kiln/v1/artifact.grpc.pb.h"
#include "kiln/v1/kiln.grpc.pb.h"
#include "proto/contract/job.h"
#include "proto/contract/record.h"
#include "proto/contract/workload.h"

namespace kiln::client {

// A verified record of a matrix product of these extents, whose plan runs `entry` of the tests'
// kernels.
struct FakeProduct {
  WorkloadSpec spec;
  Record record;
};
FakeProduct MakeProduct(int64_t m, int64_t n, int64_t k, const std::string& entry = "matmul");
// The bytes of the tests' kernels, and their digest.
const std::string& KernelArtifact();
const std::string& KernelArtifactDigest();

class FakeServer final {
 public:
  FakeServer();
  ~FakeServer();

  // Listens; the address stays the same over Stop and Start.
  void Start();
  void Stop();
  const std::string& address() const { return address_; }

  void Store(const Record& record);
  void StoreArtifact(const std::string& digest, const std::string& bytes);
  void StoreJob(const Job& job);

  // What the next watches say, one script per watch: each message in turn, then the status. Without
  // a script, a watch answers with the record of the job's signature, or waits until the server
  // stops.
  struct WatchScript {
    std::vector<google::longrunning::Operation> messages;
    absl::Status end;
  };
  void AddWatch(WatchScript script);
  // The next lookups and tunes fail like this, one each.
  void AddFailure(const absl::Status& status);

  std::atomic<int> lookups{0}, tunes{0}, watches{0}, cancels{0}, artifact_reads{0};
  std::atomic<int64_t> chunk_bytes{1 << 20};
  std::atomic<int64_t> break_read_after{
      -1};  // bytes after which the next read of an artifact breaks off, once

 private:
  class Kiln;
  class Artifacts;
  class Operations;

  bool TakeFailure(absl::Status* status);

  std::string folder_, address_;
  std::unique_ptr<Kiln> kiln_;
  std::unique_ptr<Artifacts> artifacts_service_;
  std::unique_ptr<Operations> operations_;
  std::unique_ptr<grpc::Server> server_;
  std::mutex mutex_;
  std::vector<Record> records_;
  std::vector<Job> jobs_;
  std::map<std::string, std::string> artifacts_;
  std::deque<WatchScript> watch_scripts_;
  std::deque<absl::Status> failures_;
  std::atomic<bool> stopping_{false};
};

// An operation as the server words it: running with progress, done with a record, or failed.
google::longrunning::Operation RunningOperation(const std::string& name, int64_t done,
                                                int64_t total);
google::longrunning::Operation DoneOperation(const std::string& name, const Record& record);
google::longrunning::Operation FailedOperation(const std::string& name, const absl::Status& error);

}  // namespace kiln::client
