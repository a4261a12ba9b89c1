// SPDX-License-Identifier: Apache-2.0
// The client's connection: channel, stubs, deadlines and retries. The only header of the client
// that knows gRPC; for the client's own sources.
#pragma once

#include <functional>
#include <memory>
#include <stop_token>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "client/answer_cache.h"
#include "client/kiln_client.h"
#include "google/longrunning/operations.grpc.pb.h"
#include "grpcpp/grpcpp.h"
#include "kiln/v1/artifact.grpc.pb.h"
#include "kiln/v1/kiln.grpc.pb.h"

namespace kiln::client {

struct Client::Wire {
  explicit Wire(const ClientOptions& client_options);

  // A deadline and who is calling.
  void Prepare(grpc::ClientContext* context, absl::Time deadline) const;
  // Calls until the answer is not UNAVAILABLE, or `retry_for` is over, or `stop` says so
  // (CANCELLED).
  absl::Status Call(const std::function<grpc::Status(grpc::ClientContext*)>& call,
                    absl::Duration retry_for, const std::stop_token& stop = {}) const;
  absl::Status Call(const std::function<grpc::Status(grpc::ClientContext*)>& call) const {
    return Call(call, options.retry_for);
  }
  // The contract's status of a call; where the server could not be reached, one that names it.
  absl::Status ToStatus(const grpc::Status& status) const;

  ClientOptions options;
  std::shared_ptr<grpc::Channel> channel;
  std::unique_ptr<v1::KilnService::Stub> kiln;
  std::unique_ptr<v1::ArtifactService::Stub> artifacts;
  std::unique_ptr<google::longrunning::Operations::Stub> operations;
  AnswerCache answers;
};

// Waits between two attempts: longer from one to the next, and differently in every process, so
// that a farm does not come back all at once.
class Backoff {
 public:
  Backoff();
  // Returns at once when stopped. `at_least`: what the server asked for.
  void Wait(const std::stop_token& stop, absl::Duration at_most,
            absl::Duration at_least = absl::ZeroDuration());
  void Reset() { attempt_ = 0; }

 private:
  uint64_t random_;
  int attempt_ = 0;
};

// The same status with more details; those that it has already stay.
absl::Status WithDetails(const absl::Status& status,
                         const std::map<std::string, std::string>& details);

}  // namespace kiln::client
