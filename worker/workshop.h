// SPDX-License-Identifier: Apache-2.0
// Makes candidates out of schedules: emits them and compiles them, several at a time, as nothing is
// measured meanwhile.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "proto/contract/record.h"
#include "proto/contract/workload.h"
#include "worker/bench_protocol.h"
#include "worker/compile/host_compiler.h"
#include "worker/frontend.h"

namespace kiln::worker {

// A schedule on its way. `outcome.stage` is kMeasured as long as nothing has gone wrong.
struct Candidate {
  Outcome outcome;  // schedule, stage, reason, costs, toolchain
  Plan plan;        // with artifacts named
  PlanFiles files;  // what the bench child loads
  std::string source, media, emitter;
  bool alive() const { return outcome.stage == Stage::kMeasured; }
  const Schedule& schedule() const { return outcome.schedule; }
  // Source and compiled form, for the record.
  std::vector<Artifact> Artifacts() const;
};

class Workshop {
 public:
  // All outlive it. `at_once`: compilers that run side by side.
  Workshop(const Workload& workload, const DeviceFingerprint& device, const Frontend& frontend,
           const HostCompiler& compiler, int at_once, const CancelToken& cancel)
      : workload_(workload),
        device_(device),
        frontend_(frontend),
        compiler_(compiler),
        at_once_(at_once),
        cancel_(cancel) {}

  // One candidate per schedule, in order; those that do not emit or compile say so in their
  // outcome. CANCELLED, UNAVAILABLE, RESOURCE_EXHAUSTED: as HostCompiler::Compile.
  absl::StatusOr<std::vector<Candidate>> Prepare(const std::vector<Schedule>& schedules) const;

 private:
  absl::Status Build(Candidate* candidate) const;

  const Workload& workload_;
  const DeviceFingerprint& device_;
  const Frontend& frontend_;
  const HostCompiler& compiler_;
  int at_once_;
  const CancelToken& cancel_;
};

}  // namespace kiln::worker
