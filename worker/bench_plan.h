// SPDX-License-Identifier: Apache-2.0
// A plan as the bench child has it loaded, through the same runtime that deploys it, and the
// buffers that plans are measured on. One thread.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/runtime/kiln_runtime.h"
#include "proto/contract/workload.h"
#include "worker/bench_protocol.h"

namespace kiln::worker {

// Memory of its own mapping, huge pages where it is large, with the address at a chosen distance
// from a page. Movable.
class BenchMemory {
 public:
  static absl::StatusOr<BenchMemory> Make(int64_t bytes, int64_t offset);
  BenchMemory(BenchMemory&& other) noexcept;
  BenchMemory& operator=(BenchMemory&& other) noexcept;
  ~BenchMemory();
  void* data() const { return static_cast<char*>(mapping_) + offset_; }

 private:
  BenchMemory() = default;
  void* mapping_ = nullptr;
  int64_t mapped_ = 0, offset_ = 0;
};

class BenchPlan {
 public:
  // RESOURCE_EXHAUSTED: no memory for it; FAILED_PRECONDITION with the runtime's words: it cannot
  // be loaded. `pool` outlives it.
  static absl::StatusOr<std::unique_ptr<BenchPlan>> Load(const PlanFiles& files, kiln_pool* pool);
  ~BenchPlan();
  BenchPlan(const BenchPlan&) = delete;
  BenchPlan& operator=(const BenchPlan&) = delete;

  // Of the constants among `tensors`; nothing to do for most plans.
  absl::Status Prepack(void* const* tensors) const;
  absl::Status Launch(void* const* tensors) const;

 private:
  BenchPlan(kiln_plan* plan, kiln_pool* pool) : plan_(plan), pool_(pool) {}
  kiln_plan* plan_;
  kiln_pool* pool_;
  std::vector<BenchMemory> workspace_;  // one or none
};

// Inputs, constants and outputs of the workload, with random inputs, where a careful user would
// have them.
class BenchBuffers {
 public:
  // Called once the threads are pinned, so that the pages lie near them. RESOURCE_EXHAUSTED: no
  // memory.
  static absl::StatusOr<BenchBuffers> Make(const Workload& workload, uint64_t seed);
  void* const* tensors() const { return tensors_.data(); }
  // Whether a launch changes its own inputs: repeated, it would run into infinities or denormals.
  bool in_place() const { return !changed_.empty(); }
  // Makes such inputs what they were.
  void Restore() const;

 private:
  struct Changed {
    void* data;
    std::vector<uint8_t> bytes;
  };
  std::vector<BenchMemory> memory_;
  std::vector<void*> tensors_;
  std::vector<Changed> changed_;
};

}  // namespace kiln::worker
