// SPDX-License-Identifier: Apache-2.0
// What a job is about, once it has been analysed: the checked workload, the space that its family
// offers, and what verifying and timing it needs.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "proto/contract/workload.h"
#include "worker/bench.h"
#include "worker/compile/host_compiler.h"
#include "worker/frontend.h"
#include "worker/job.h"

namespace kiln::worker {

struct Subject {
  Workload workload;
  DeviceFingerprint device;
  std::unique_ptr<compiler::Space> space;
  int64_t schedules = 0;     // in the space; 0: more than the budget has trials
  SetupRequest setup;        // of the bench child, the compiled reference in it
  int64_t memory_bytes = 0;  // that the bench child may use
};

// FAILED_PRECONDITION: the lease is for another device, or for what this worker takes for another
// workload (VERSION_SKEW); RESOURCE_EXHAUSTED: it does not fit into memory, with the bytes;
// UNIMPLEMENTED: no family takes it, with every reason; and the errors of CheckWorkload and
// HostCompiler::Compile.
absl::StatusOr<Subject> Analyse(const JobLease& lease, const DeviceFingerprint& here,
                                const Frontend& frontend, const HostCompiler& compiler,
                                const std::string& temp_root, const CancelToken& cancel);

// Bytes that the bench child needs to verify and time the workload: buffers, and inputs and
// references of all sets.
int64_t BenchBytes(const Workload& workload);

// Nanoseconds below which no right kernel can be on this device; 0: not known. Generous on purpose:
// it catches a launch that did nothing, not one that is good.
double FloorNs(const Workload& workload, const DeviceFingerprint& device);

}  // namespace kiln::worker
