// SPDX-License-Identifier: Apache-2.0
// Builds emitted kernels many at a time and runs them block by block on the calling thread, so that
// tests of the compiler need neither the worker nor the runtime: blocks in any order, scratch and
// workspace poisoned before they are used, guards around every tensor.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/contract/device.h"
#include "proto/contract/plan.h"
#include "proto/contract/schedule.h"
#include "proto/contract/workload.h"
#include "worker/compiler/analysis/host_tensor.h"

namespace kiln::compiler {

// A device whose vectors this machine can run: AVX2 if it has it, else 128 bits.
DeviceFingerprint TestDevice(int threads = 2);

// A workload of program text; fails the test if it is refused.
Workload MakeWorkload(const WorkloadSpec& spec);

class KernelBatch {
 public:
  explicit KernelBatch(std::string optimisation = "-O1");
  ~KernelBatch();
  KernelBatch(const KernelBatch&) = delete;
  KernelBatch& operator=(const KernelBatch&) = delete;

  // Returns the kernel's number. Errors of Family::Build.
  absl::StatusOr<int> Add(const Workload& workload, const DeviceFingerprint& device,
                          const Schedule& schedule);
  // Compiles all that was added, in few compiler runs. INTERNAL with the compiler's words.
  absl::Status Compile();
  const std::string& source(int kernel) const { return kernels_[kernel].source; }
  const Plan& plan(int kernel) const { return kernels_[kernel].plan; }

  // Runs the kernel on inputs and constants in order; gives the output (the only one). `backwards`:
  // blocks of each step from the last to the first. INTERNAL: it wrote beside a tensor or into an
  // input.
  absl::StatusOr<HostTensor> Run(int kernel, const std::vector<HostTensor>& inputs,
                                 bool backwards) const;

 private:
  struct Kernel {
    Workload workload;
    std::string source, prefix;
    Plan plan;
    void* library = nullptr;
  };
  std::string optimisation_, directory_;
  std::vector<std::string> flags_;
  std::vector<Kernel> kernels_;
  std::vector<void*> libraries_;
};

// Inputs and constants of a workload, filled with small integers (exact in any order) or with reals
// in [-1, 1].
std::vector<HostTensor> MakeInputs(const Workload& workload, uint64_t seed, bool integers);

// The largest |got - want| / (1 + |want|) over all elements; NaN against NaN and equal infinities
// count 0, NaN against a number infinity.
double LargestError(const HostTensor& got, const HostTensor& want);

}  // namespace kiln::compiler
