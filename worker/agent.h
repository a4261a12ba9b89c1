// SPDX-License-Identifier: Apache-2.0
// The worker's side of kiln.v1.WorkerService: registers, pulls leases, runs their jobs and reports.
// The server may go away at any time: jobs go on, what there is to say is kept, and the agent
// registers again when it is back.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "worker/run_job.h"

namespace kiln::worker {

struct AgentOptions {
  std::string server;  // HOST:PORT or unix:PATH
  absl::Duration poll =
      absl::Seconds(5);  // that the server may hold a request for a lease; well below an expiry
  absl::Duration call_limit = absl::Seconds(10);  // of every other call
};

class Agent {
 public:
  // `tools` without a worker's name: the agent chooses one.
  Agent(AgentOptions options, JobTools tools);
  ~Agent();

  // Serves until Drain; `ready` is called once, when the server knows this worker. Errors: what no
  // waiting cures (the server refuses this worker).
  absl::Status Run(const std::function<void()>& ready);

  // Stops asking for jobs and hands back the one at work. Thread-safe; returns at once.
  void Drain();

 private:
  class Connection;
  class LeaseRun;
  void RunLease(LeaseRun* run);

  std::unique_ptr<Connection> connection_;
  JobTools tools_;
};

}  // namespace kiln::worker
