// SPDX-License-Identifier: Apache-2.0
// What the runtime's tests share: the bytes of kernels.cc's shared object as an artifact source,
// builders for plans, and owners for the C handles.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "client/runtime/kiln_runtime.h"
#include "client/runtime/sha256.h"
#include "proto/contract/plan.h"

namespace kiln::runtime {

struct PoolDeleter {
  void operator()(kiln_pool* pool) const { kiln_pool_destroy(pool); }
};
struct PlanDeleter {
  void operator()(kiln_plan* plan) const { kiln_plan_destroy(plan); }
};
using PoolPtr = std::unique_ptr<kiln_pool, PoolDeleter>;
using PlanPtr = std::unique_ptr<kiln_plan, PlanDeleter>;

inline PoolPtr MakePool(int threads) {
  kiln_pool* pool = nullptr;
  EXPECT_EQ(kiln_pool_create(threads, 0, &pool), KILN_OK) << kiln_error();
  return PoolPtr(pool);
}

inline const std::string& KernelBytes() {
  static const std::string bytes = [] {
    std::ifstream file(KILN_TEST_KERNELS, std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(file), {});
  }();
  return bytes;
}

inline const std::string& KernelDigest() {
  static const std::string digest = Sha256Hex(KernelBytes().data(), KernelBytes().size());
  return digest;
}

// Has the kernels' artifact and no other.
inline int KernelSource(void*, const char* digest, const void** bytes, size_t* size) {
  if (digest != KernelDigest()) return 1;
  *bytes = KernelBytes().data();
  *size = KernelBytes().size();
  return 0;
}

inline Argument TensorArgument(int index, int64_t offset = 0) {
  return {.kind = ArgumentKind::kTensor, .index = index, .offset = offset};
}
inline Argument WorkspaceArgument(int64_t offset, bool persistent = false) {
  return {.kind = ArgumentKind::kWorkspace, .offset = offset, .persistent = persistent};
}
inline Argument IntegerArgument(int64_t value) {
  return {.kind = ArgumentKind::kScalar, .integer = value};
}
inline Argument NumberArgument(double value) {
  return {.kind = ArgumentKind::kScalar, .is_float = true, .number = value};
}

inline Step KernelStep(const std::string& entry, int64_t blocks, std::vector<Argument> arguments) {
  Step step;
  step.entry = entry;
  step.grid[0].value = blocks;
  step.artifact = KernelDigest();
  step.arguments = std::move(arguments);
  return step;
}

// y = a * x + b of n floats, tensors 0 and 1.
inline Plan ScalePlan(int64_t n, int64_t blocks, double a = 3, double b = 1) {
  Plan plan;
  plan.tensors = {{.alignment = 16, .span_bytes = 4 * n}, {.alignment = 16, .span_bytes = 4 * n}};
  plan.steps = {KernelStep("scale", blocks,
                           {TensorArgument(0), TensorArgument(1), IntegerArgument(n),
                            NumberArgument(a), NumberArgument(b)})};
  return plan;
}

inline kiln_code TryLoad(const std::string& text, PlanPtr* plan) {
  kiln_plan* loaded = nullptr;
  const kiln_code code = kiln_plan_load(text.data(), text.size(), KernelSource, nullptr, &loaded);
  plan->reset(loaded);
  return code;
}

inline PlanPtr MustLoad(const Plan& plan) {
  PlanPtr loaded;
  EXPECT_EQ(TryLoad(PrintPlan(plan), &loaded), KILN_OK) << kiln_error();
  return loaded;
}

// A code and a part of the text that explains it.
inline void ExpectLoadFails(const Plan& plan, kiln_code code, const std::string& text) {
  PlanPtr loaded;
  EXPECT_EQ(TryLoad(PrintPlan(plan), &loaded), code) << kiln_error();
  EXPECT_EQ(loaded, nullptr);
  EXPECT_NE(std::string(kiln_error()).find(text), std::string::npos) << kiln_error();
}

// 64-byte-aligned memory.
template <typename T>
class Aligned {
 public:
  explicit Aligned(size_t size, T value = T{}) : storage_(size + 64 / sizeof(T), value) {
    const uintptr_t address = reinterpret_cast<uintptr_t>(storage_.data());
    data_ = storage_.data() + (64 - address % 64) % 64 / sizeof(T);
  }
  T* data() { return data_; }
  T& operator[](size_t i) { return data_[i]; }

 private:
  std::vector<T> storage_;
  T* data_;
};

}  // namespace kiln::runtime
