// SPDX-License-Identifier: Apache-2.0
// A plan whose every promise has been checked and whose code is in memory, so that a launch only
// fills in pointers. Immutable after loading but for `prepacked`.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "client/runtime/kiln_runtime.h"
#include "client/runtime/library.h"
#include "client/runtime/memory.h"
#include "client/runtime/module.h"
#include "proto/contract/plan.h"

namespace kiln::runtime {

inline constexpr int kMaxArguments = 128;  // of a step; they stand on the launching thread's stack
inline constexpr int kMaxDims = 32;        // LANGUAGE.md section 8

struct LoadedStep {
  Step step;
  bool at_prepack = false;           // runs in kiln_plan_prepack, not in a launch
  bool fixed_grid = true;            // no expression in it
  kiln_cpu_kernel kernel = nullptr;  // kKernel, kPrepack
  GemmType gemm = GemmType::kF32;    // kLibrary
  int64_t fill_bytes = 0;            // kFill
};

}  // namespace kiln::runtime

struct kiln_plan {
  kiln::Plan plan;
  std::vector<kiln::runtime::Module> modules;
  std::vector<kiln::runtime::LoadedStep> steps;
  kiln::runtime::Pages persistent;
  int dims = 0;     // dynamic dims that it reads: the largest index, plus 1
  int threads = 1;  // that it needs of a pool
  std::atomic<bool> prepacked{false};
};
