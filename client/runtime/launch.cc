// SPDX-License-Identifier: Apache-2.0
// A launch: checks the caller's pointers, then runs the steps one after the other on the pool.
// Allocates nothing.
#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "client/runtime/error.h"
#include "client/runtime/loaded_plan.h"
#include "client/runtime/pool.h"

namespace kiln::runtime {
namespace {

using Long = long long;  // for printf

constexpr int64_t kWorkspaceAlignment = 64;
constexpr int64_t kFillBlock = 256
                               << 10;  // below it, one thread fills faster than two would be woken

bool IsAligned(const void* pointer, int64_t alignment) {
  return reinterpret_cast<uintptr_t>(pointer) % alignment == 0;
}

struct Bindings {
  void* const* tensors;
  void* workspace;
  const int64_t* dims;
};

kiln_code CheckTensor(const kiln_plan& plan, int tensor, const void* pointer) {
  const TensorNeed& need = plan.plan.tensors[tensor];
  if (pointer == nullptr && need.span_bytes > 0) {
    return Fail(KILN_BAD_ARGUMENT, "tensor %d: null; needed: %lld bytes", tensor,
                static_cast<Long>(need.span_bytes));
  }
  if (!IsAligned(pointer, need.alignment)) {
    return Fail(KILN_BAD_ARGUMENT, "tensor %d: %p is not aligned to %lld bytes, as the plan needs",
                tensor, pointer, static_cast<Long>(need.alignment));
  }
  return KILN_OK;
}

// An output shares memory with nothing but the tensor that it is declared to be, and then all of
// it.
kiln_code CheckOverlaps(const kiln_plan& plan, void* const* tensors) {
  const std::vector<TensorNeed>& needs = plan.plan.tensors;
  const auto begin = [&](size_t i) { return reinterpret_cast<uintptr_t>(tensors[i]); };
  const auto end = [&](size_t i) { return begin(i) + needs[i].span_bytes; };
  for (size_t i = 0; i < needs.size(); ++i) {
    if (!needs[i].written || needs[i].span_bytes == 0) continue;
    const int alias = needs[i].alias_of;
    if (alias >= 0 && tensors[i] != tensors[alias]) {
      return Fail(KILN_BAD_ARGUMENT,
                  "tensor %zu: %p; needed: the memory of tensor %d, %p, its alias", i, tensors[i],
                  alias, tensors[alias]);
    }
    for (size_t j = 0; j < needs.size(); ++j) {
      const bool shared = alias == static_cast<int>(j) || needs[j].alias_of == static_cast<int>(i);
      if (i == j || shared || needs[j].span_bytes == 0) continue;
      if (begin(i) < end(j) && begin(j) < end(i)) {
        return Fail(KILN_BAD_ARGUMENT,
                    "tensor %zu: %lld bytes at %p overlap tensor %zu, %lld bytes at %p; an output "
                    "needs memory of its own",
                    i, static_cast<Long>(needs[i].span_bytes), tensors[i], j,
                    static_cast<Long>(needs[j].span_bytes), tensors[j]);
      }
    }
  }
  return KILN_OK;
}

// What a prepack and a launch have in common; a prepack reads only the tensors of its own steps.
kiln_code CheckBindings(const kiln_plan& plan, const kiln_pool* pool, const Bindings& bindings,
                        bool prepack) {
  if (pool == nullptr) return Fail(KILN_BAD_ARGUMENT, "pool: null");
  if (pool->threads() < plan.threads) {
    return Fail(KILN_UNSUPPORTED, "pool: %d threads; the plan needs %d", pool->threads(),
                plan.threads);
  }
  if (bindings.tensors == nullptr && !plan.plan.tensors.empty()) {
    return Fail(KILN_BAD_ARGUMENT, "tensors: null; needed: %zu pointers", plan.plan.tensors.size());
  }
  if (bindings.dims == nullptr && plan.dims > 0) {
    return Fail(KILN_BAD_ARGUMENT, "dims: null; needed: %d values", plan.dims);
  }
  if (!prepack) {
    for (size_t i = 0; i < plan.plan.tensors.size(); ++i) {
      if (const kiln_code code = CheckTensor(plan, static_cast<int>(i), bindings.tensors[i]);
          code != KILN_OK)
        return code;
    }
    return CheckOverlaps(plan, bindings.tensors);
  }
  for (const LoadedStep& loaded : plan.steps) {
    if (!loaded.at_prepack) continue;
    for (const Argument& argument : loaded.step.arguments) {
      if (argument.kind != ArgumentKind::kTensor) continue;
      const kiln_code code = CheckTensor(plan, argument.index, bindings.tensors[argument.index]);
      if (code != KILN_OK) return code;
    }
  }
  return KILN_OK;
}

// An empty tensor's pointer may be null, and nothing is added to null.
void* At(void* base, int64_t offset) {
  return base == nullptr ? nullptr : static_cast<char*>(base) + offset;
}

kiln_arg Bind(const kiln_plan& plan, const Argument& argument, const Bindings& bindings) {
  kiln_arg bound = {};
  switch (argument.kind) {
    case ArgumentKind::kTensor:
      bound.pointer = At(bindings.tensors[argument.index], argument.offset);
      break;
    case ArgumentKind::kWorkspace:
      bound.pointer =
          At(argument.persistent ? plan.persistent.data() : bindings.workspace, argument.offset);
      break;
    case ArgumentKind::kDim:
      bound.integer = bindings.dims[argument.index];
      break;
    case ArgumentKind::kScalar:
      if (argument.is_float) {
        bound.number = argument.number;
      } else {
        bound.integer = argument.integer;
      }
      break;
  }
  return bound;
}

struct KernelCall {
  kiln_cpu_kernel kernel;
  const kiln_arg* arguments;
  const kiln_pool* pool;
  int64_t grid[3];
  int64_t shared_bytes;
};

void CallKernel(void* context, int64_t index, int slot) {
  const auto& call = *static_cast<const KernelCall*>(context);
  kiln_block block;
  block.index[0] = index % call.grid[0];
  block.index[1] = index / call.grid[0] % call.grid[1];
  block.index[2] = index / call.grid[0] / call.grid[1];
  memcpy(block.grid, call.grid, sizeof(block.grid));
  block.shared = call.pool->Scratch(slot, call.shared_bytes);
  call.kernel(call.arguments, &block);
}

kiln_code EvaluateGrid(const LoadedStep& loaded, const kiln_plan& plan, const int64_t* dims,
                       int64_t* grid) {
  if (loaded.fixed_grid) {
    for (int d = 0; d < 3; ++d) grid[d] = loaded.step.grid[d].value;
    return KILN_OK;
  }
  // Its memory is taken once per thread that launches plans with dynamic dims.
  static thread_local std::vector<int64_t> values;
  values.assign(dims, dims + plan.dims);
  for (int d = 0; d < 3; ++d) {
    std::string error;
    if (!Evaluate(loaded.step.grid[d], values, &grid[d], &error)) {
      return Fail(KILN_BAD_ARGUMENT, "grid %s: %s", loaded.step.grid[d].expression.c_str(),
                  error.c_str());
    }
  }
  return KILN_OK;
}

kiln_code RunKernel(const LoadedStep& loaded, const kiln_plan& plan, const Bindings& bindings,
                    const kiln_arg* arguments, kiln_pool* pool) {
  KernelCall call{loaded.kernel, arguments, pool, {}, loaded.step.shared_bytes};
  if (const kiln_code code = EvaluateGrid(loaded, plan, bindings.dims, call.grid); code != KILN_OK)
    return code;
  int64_t blocks = call.grid[0];
  if (__builtin_mul_overflow(blocks, call.grid[1], &blocks) ||
      __builtin_mul_overflow(blocks, call.grid[2], &blocks)) {
    return Fail(KILN_INVALID_PLAN, "step %s: a grid of %lld x %lld x %lld blocks",
                loaded.step.entry.c_str(), static_cast<Long>(call.grid[0]),
                static_cast<Long>(call.grid[1]), static_cast<Long>(call.grid[2]));
  }
  pool->ForEachBlock(blocks, CallKernel, &call);
  return KILN_OK;
}

kiln_code RunLibrary(const LoadedStep& loaded, const kiln_arg* arguments, kiln_pool* pool) {
  Gemm gemm;
  gemm.a = arguments[0].pointer, gemm.b = arguments[1].pointer, gemm.c = arguments[2].pointer;
  int64_t* const numbers[] = {&gemm.trans_a,
                              &gemm.trans_b,
                              &gemm.m,
                              &gemm.n,
                              &gemm.k,
                              &gemm.lda,
                              &gemm.ldb,
                              &gemm.ldc,
                              &gemm.batch,
                              &gemm.batch_stride_a,
                              &gemm.batch_stride_b,
                              &gemm.batch_stride_c};
  static_assert(3 + sizeof(numbers) / sizeof(numbers[0]) == kLibraryGemmArguments);
  for (int i = 3; i < kLibraryGemmArguments; ++i) *numbers[i - 3] = arguments[i].integer;
  if (const kiln_code code = CheckGemm(gemm); code != KILN_OK) return code;
  RunGemm(loaded.gemm, gemm, *pool);
  return KILN_OK;
}

struct FillCall {
  char* data;
  int64_t bytes;
};

void FillBlock(void* context, int64_t index, int /*slot*/) {
  const auto& call = *static_cast<const FillCall*>(context);
  const int64_t begin = index * kFillBlock;
  memset(call.data + begin, 0, std::min(kFillBlock, call.bytes - begin));
}

void RunFill(const LoadedStep& loaded, const kiln_arg* arguments, kiln_pool* pool) {
  FillCall call{static_cast<char*>(arguments[0].pointer), loaded.fill_bytes};
  pool->ForEachBlock((call.bytes + kFillBlock - 1) / kFillBlock, FillBlock, &call);
}

// Runs the steps of a prepack, or those of a launch.
kiln_code RunSteps(const kiln_plan& plan, kiln_pool* pool, const Bindings& bindings, bool prepack) {
  const std::lock_guard<std::mutex> lock(pool->mutex());
  kiln_arg arguments[kMaxArguments];
  for (const LoadedStep& loaded : plan.steps) {
    if (loaded.at_prepack != prepack) continue;
    for (size_t i = 0; i < loaded.step.arguments.size(); ++i) {
      arguments[i] = Bind(plan, loaded.step.arguments[i], bindings);
    }
    kiln_code code = KILN_OK;
    switch (loaded.step.kind) {
      case StepKind::kKernel:
      case StepKind::kPrepack:
        code = RunKernel(loaded, plan, bindings, arguments, pool);
        break;
      case StepKind::kLibrary:
        code = RunLibrary(loaded, arguments, pool);
        break;
      case StepKind::kFill:
        RunFill(loaded, arguments, pool);
        break;
    }
    if (code != KILN_OK) return code;
  }
  return KILN_OK;
}

}  // namespace
}  // namespace kiln::runtime

extern "C" kiln_code kiln_plan_prepack(kiln_plan* plan, kiln_pool* pool, void* const* tensors,
                                       const int64_t* dims) {
  using namespace kiln::runtime;
  if (plan == nullptr) return Fail(KILN_BAD_ARGUMENT, "plan: null");
  const Bindings bindings{tensors, nullptr, dims};
  kiln_code code = CheckBindings(*plan, pool, bindings, true);
  if (code == KILN_OK) code = RunSteps(*plan, pool, bindings, true);
  if (code == KILN_OK) plan->prepacked.store(true, std::memory_order_release);
  return code;
}

extern "C" kiln_code kiln_plan_launch(const kiln_plan* plan, kiln_pool* pool, void* const* tensors,
                                      void* workspace, const int64_t* dims) {
  using namespace kiln::runtime;
  if (plan == nullptr) return Fail(KILN_BAD_ARGUMENT, "plan: null");
  const Bindings bindings{tensors, workspace, dims};
  if (const kiln_code code = CheckBindings(*plan, pool, bindings, false); code != KILN_OK)
    return code;
  if (plan->plan.persistent_bytes > 0 && !plan->prepacked.load(std::memory_order_acquire)) {
    return Fail(KILN_BAD_ARGUMENT,
                "plan: its constants are not packed yet; call kiln_plan_prepack first");
  }
  if (plan->plan.workspace_bytes > 0 &&
      (workspace == nullptr || !IsAligned(workspace, kWorkspaceAlignment))) {
    return Fail(KILN_BAD_ARGUMENT, "workspace: %p; needed: %lld bytes, aligned to %lld", workspace,
                static_cast<Long>(plan->plan.workspace_bytes),
                static_cast<Long>(kWorkspaceAlignment));
  }
  return RunSteps(*plan, pool, bindings, false);
}
