// SPDX-License-Identifier: Apache-2.0
// The calls of a worker, with their deadlines, retries and registrations. Thread-safe. Included by
// the agent alone: it is where the generated headers are.
#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>

#include "absl/status/statusor.h"
#include "kiln/v1/artifact.grpc.pb.h"
#include "kiln/v1/worker.grpc.pb.h"
#include "worker/agent.h"

namespace kiln::worker {

// A lease as it is named in calls; empty: none.
struct HeldLease {
  std::string job;
  int64_t epoch = 0;
};

class Agent::Connection {
 public:
  Connection(AgentOptions options, const JobTools& tools, std::string name);

  const std::string& name() const { return name_; }
  absl::Duration heartbeat() const;

  // Announces the worker; says whether the held lease is still its own.
  absl::StatusOr<bool> Register(const HeldLease& held);
  absl::StatusOr<v1::LeaseJobResponse> Lease();
  absl::StatusOr<v1::HeartbeatResponse> Heartbeat(const v1::HeartbeatRequest& request);
  absl::Status ReportOutcomes(const v1::ReportOutcomesRequest& request);
  absl::StatusOr<v1::CompleteJobResponse> Complete(const v1::CompleteJobRequest& request);
  absl::Status Release(const v1::ReleaseJobRequest& request);
  absl::Status WriteArtifact(const Artifact& artifact);
  absl::StatusOr<std::string> ReadArtifact(const std::string& digest);

  // Calls until it succeeds or fails for another reason than that the server is away just now. A
  // server that has forgotten this worker is told again. Gives up with ABORTED when the lease is
  // lost meanwhile, and when `stop` says so (may be empty).
  absl::Status Persist(const HeldLease& held, const std::function<absl::Status()>& call,
                       const std::function<bool()>& stop);

  // Ends the waiting calls for leases, now and later, and shortens waits.
  void Stop();
  bool stopped() const;
  // Waits, with some chance in it; returns early when stopped.
  void Pause(absl::Duration duration);

 private:
  // A context that Stop cancels too, if `stoppable`.
  class Call;

  const AgentOptions options_;
  const JobTools& tools_;
  const std::string name_;
  std::unique_ptr<v1::WorkerService::Stub> workers_;
  std::unique_ptr<v1::ArtifactService::Stub> artifacts_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool stopped_ = false;
  grpc::ClientContext* polling_ = nullptr;
  absl::Duration heartbeat_ = absl::Seconds(2);
};

// The server does not know this worker (any more).
bool IsUnknownWorker(const absl::Status& status);
// It is away, or did not answer in time.
bool IsAway(const absl::Status& status);

}  // namespace kiln::worker
