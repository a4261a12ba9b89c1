// SPDX-License-Identifier: Apache-2.0
// The compiler as a job uses it. An interface, so that a test can hand in families that crash, hang
// or compute nonsense: no such thing is in the real one. Thread-safe: candidates are emitted on
// several threads.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "worker/compiler/compiler.h"
#include "worker/compiler/families/family.h"

namespace kiln::worker {

class Frontend {
 public:
  virtual ~Frontend() = default;
  // Of the first family that takes the workload. UNIMPLEMENTED with every family's reason.
  virtual absl::StatusOr<std::unique_ptr<compiler::Space>> MakeSpace(
      const Workload& workload, const DeviceFingerprint& device) const = 0;
  // As compiler::Emit; of schedule "library/1" too.
  virtual absl::StatusOr<compiler::Emission> Emit(const Workload& workload,
                                                  const DeviceFingerprint& device,
                                                  const Schedule& schedule) const = 0;
  // Nanoseconds; infinity where the model has no answer.
  virtual double Predict(const Workload& workload, const DeviceFingerprint& device,
                         const Schedule& schedule) const = 0;
  virtual std::vector<std::string> families() const = 0;  // "contraction/1"
  virtual std::string emitter() const = 0;                // as in its emissions
};

// worker/compiler itself.
std::unique_ptr<Frontend> MakeFrontend();

}  // namespace kiln::worker
