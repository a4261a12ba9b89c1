// SPDX-License-Identifier: Apache-2.0
// The compiler as its users see it (worker, server, CLI): a workload, a device and a schedule in;
// source, plan and a predicted time out. Pure: no process, device, file or clock.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "worker/compiler/families/family.h"

namespace kiln::compiler {

struct Emission {
  std::string source;              // one translation unit; deterministic
  std::string media;               // "source/c++"
  std::vector<std::string> flags;  // for the host compiler: "-O3", "-mavx2", ... (no paths)
  Plan plan;                       // steps[].artifact is empty: the compile step fills it in
  std::string emitter;             // "cpu-c++/1"
};

// FAILED_PRECONDITION: the schedule is illegal (Outcome stage `illegal`); INTERNAL: a bug of ours.
absl::StatusOr<Emission> Emit(const Workload& workload, const DeviceFingerprint& device,
                              const Schedule& schedule);

// Tier 1 of the cost model: nanoseconds of one launch, from device facts and the tile program's
// exact counts.
absl::StatusOr<double> Predict(const Workload& workload, const DeviceFingerprint& device,
                               const Schedule& schedule);

}  // namespace kiln::compiler
