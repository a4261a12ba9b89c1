// SPDX-License-Identifier: Apache-2.0
// One schedule of one workload, compiled and loaded as a deployment loads it, and timed. For
// benchmarks: no verification beyond a comparison with the library's result, no child process.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/runtime/kiln_runtime.h"
#include "proto/contract/device.h"
#include "proto/contract/schedule.h"
#include "proto/contract/workload.h"

namespace kiln::bench {

// Memory of a workload's tensors, filled with numbers in [-1, 1).
class Operands {
 public:
  explicit Operands(const Workload& workload);
  ~Operands();
  Operands(const Operands&) = delete;
  Operands& operator=(const Operands&) = delete;
  void* const* tensors() const { return tensors_.data(); }
  const float* output() const { return static_cast<const float*>(tensors_.back()); }
  int64_t output_elements() const { return output_elements_; }

 private:
  std::vector<void*> tensors_;
  int64_t output_elements_ = 0;
};

struct Sample {
  double nanoseconds = 0;  // per launch
  bool undisturbed =
      true;  // the processor was ours: no preemption, processor time no less than time
};

class Subject {
 public:
  // INTERNAL with the compiler's or the runtime's words; the errors of compiler::Emit.
  static absl::StatusOr<std::unique_ptr<Subject>> Make(const Workload& workload,
                                                       const DeviceFingerprint& device,
                                                       const Schedule& schedule,
                                                       const std::string& directory,
                                                       kiln_pool* pool, const Operands& operands);
  ~Subject();
  Subject(const Subject&) = delete;
  Subject& operator=(const Subject&) = delete;

  const Schedule& schedule() const { return schedule_; }
  void Launch() const;
  // Launches as often as fill `seconds`, once at least.
  // `busy`: by the process's processor time, for one thread on a machine that is not quiet.
  Sample Time(double seconds, bool busy = false) const;
  double best_ns = 0;  // of the search

 private:
  Subject() = default;
  Schedule schedule_;
  kiln_plan* plan_ = nullptr;
  kiln_pool* pool_ = nullptr;
  void* workspace_ = nullptr;
  const Operands* operands_ = nullptr;
};

}  // namespace kiln::bench
