// SPDX-License-Identifier: Apache-2.0
#include "client/runtime/loaded_plan.h"

#include <algorithm>
#include <cctype>
#include <memory>
#include <new>

#include "client/runtime/cpu.h"
#include "client/runtime/error.h"
#include "client/runtime/pool.h"

namespace kiln::runtime {
namespace {

constexpr int64_t kMaxBytes = int64_t{1} << 46;
using Long = long long;  // for printf

kiln_code CheckDevice(const Plan& plan, int* threads) {
  for (const std::string& feature : plan.features) {
    if (!CpuHas(feature.c_str())) {
      return Fail(KILN_UNSUPPORTED, "plan: needs the CPU feature %s, which this machine lacks",
                  feature.c_str());
    }
  }
  for (const auto& [name, value] : plan.needs) {
    if (name != "threads") {
      return Fail(KILN_UNSUPPORTED,
                  "plan: needs %s %lld, which this runtime cannot provide; it runs CPU plans",
                  name.c_str(), static_cast<Long>(value));
    }
    *threads = static_cast<int>(std::min<int64_t>(value, INT32_MAX));
  }
  return KILN_OK;
}

kiln_code CheckSizes(const Plan& plan) {
  if (plan.workspace_bytes < 0 || plan.workspace_bytes > kMaxBytes || plan.persistent_bytes < 0 ||
      plan.persistent_bytes > kMaxBytes) {
    return Fail(KILN_INVALID_PLAN,
                "plan: workspace of %lld and persistent memory of %lld bytes; allowed: 0 to %lld",
                static_cast<Long>(plan.workspace_bytes), static_cast<Long>(plan.persistent_bytes),
                static_cast<Long>(kMaxBytes));
  }
  for (size_t i = 0; i < plan.tensors.size(); ++i) {
    const TensorNeed& need = plan.tensors[i];
    const int tensors = static_cast<int>(plan.tensors.size());
    if (need.alias_of >= tensors || need.alias_of == static_cast<int>(i)) {
      return Fail(KILN_INVALID_PLAN, "plan: tensor %zu: aliases tensor %d of %d", i, need.alias_of,
                  tensors);
    }
    const bool power_of_two = need.alignment > 0 && (need.alignment & (need.alignment - 1)) == 0;
    if (!power_of_two || need.span_bytes < 0) {
      return Fail(KILN_INVALID_PLAN,
                  "plan: tensor %zu: alignment %lld, span %lld bytes; allowed: a power of two, "
                  "at least 0",
                  i, static_cast<Long>(need.alignment), static_cast<Long>(need.span_bytes));
    }
  }
  return KILN_OK;
}

// The number of dims that an expression reads: its largest $i, plus 1.
int DimsOf(const std::string& expression) {
  int dims = 0;
  for (size_t i = 0; i < expression.size(); ++i) {
    if (expression[i] != '$') continue;
    int index = 0;
    for (++i; i < expression.size() && isdigit(static_cast<unsigned char>(expression[i])); ++i) {
      index = std::min(index * 10 + (expression[i] - '0'), kMaxDims);
    }
    dims = std::max(dims, index + 1);
    --i;
  }
  return dims;
}

class StepLoader {
 public:
  StepLoader(kiln_plan* plan, kiln_artifact_source source, void* context)
      : plan_(*plan), source_(source), context_(context) {}

  kiln_code Load(int number, LoadedStep* loaded) {
    number_ = number;
    const Step& step = loaded->step;
    if (const kiln_code code = CheckArguments(step); code != KILN_OK) return code;
    switch (step.kind) {
      case StepKind::kKernel:
      case StepKind::kPrepack:
        loaded->at_prepack = step.kind == StepKind::kPrepack;
        if (const kiln_code code = CheckGrid(step, &loaded->fixed_grid); code != KILN_OK)
          return code;
        if (const kiln_code code = FindKernel(step, &loaded->kernel); code != KILN_OK) return code;
        break;
      case StepKind::kLibrary:
        if (const kiln_code code = LoadLibrary(step, &loaded->gemm); code != KILN_OK) return code;
        break;
      case StepKind::kFill:
        if (const kiln_code code = LoadFill(step, loaded); code != KILN_OK) return code;
        break;
    }
    return loaded->at_prepack ? CheckPrepack(step) : KILN_OK;
  }

 private:
  kiln_code CheckArguments(const Step& step) {
    if (step.arguments.size() > kMaxArguments) {
      return Fail(KILN_INVALID_PLAN, "step %d: %zu arguments; allowed: %d", number_,
                  step.arguments.size(), kMaxArguments);
    }
    for (size_t i = 0; i < step.arguments.size(); ++i) {
      const Argument& argument = step.arguments[i];
      bool good = true;
      if (argument.kind == ArgumentKind::kTensor) {
        good = argument.index >= 0 &&
               argument.index < static_cast<int>(plan_.plan.tensors.size()) &&
               argument.offset >= 0 &&
               argument.offset <= plan_.plan.tensors[argument.index].span_bytes;
      } else if (argument.kind == ArgumentKind::kWorkspace) {
        const int64_t size =
            argument.persistent ? plan_.plan.persistent_bytes : plan_.plan.workspace_bytes;
        good = argument.offset >= 0 && argument.offset <= size;
      } else if (argument.kind == ArgumentKind::kDim) {
        good = argument.index >= 0 && argument.index < kMaxDims;
        if (good) plan_.dims = std::max(plan_.dims, argument.index + 1);
      }
      if (!good) {
        return Fail(KILN_INVALID_PLAN,
                    "step %d: argument %zu: index %d, offset %lld lies outside what the plan has",
                    number_, i, argument.index, static_cast<Long>(argument.offset));
      }
    }
    return KILN_OK;
  }

  kiln_code CheckGrid(const Step& step, bool* fixed) {
    const Count one;
    for (int d = 0; d < 3; ++d) {
      if (step.block[d] != one || step.cluster[d] != one) {
        return Fail(
            KILN_UNSUPPORTED,
            "step %d (%s): asks for a GPU's blocks of threads; this runtime runs CPU kernels "
            "only",
            number_, step.entry.c_str());
      }
      if (!step.grid[d].expression.empty()) {
        *fixed = false;
        plan_.dims = std::max(plan_.dims, DimsOf(step.grid[d].expression));
        if (plan_.dims > kMaxDims) {
          return Fail(KILN_INVALID_PLAN, "step %d: grid %s reads more than %d dims", number_,
                      step.grid[d].expression.c_str(), kMaxDims);
        }
      } else if (step.grid[d].value < 0) {
        return Fail(KILN_INVALID_PLAN, "step %d: grid %lld; allowed: at least 0", number_,
                    static_cast<Long>(step.grid[d].value));
      }
    }
    if (step.shared_bytes < 0 || step.shared_bytes > kScratchBytes) {
      return Fail(KILN_UNSUPPORTED, "step %d: scratch of %lld bytes a thread; allowed: 0 to %lld",
                  number_, static_cast<Long>(step.shared_bytes), static_cast<Long>(kScratchBytes));
    }
    return KILN_OK;
  }

  kiln_code FindKernel(const Step& step, kiln_cpu_kernel* kernel) {
    const Module* module = nullptr;
    for (const Module& loaded : plan_.modules) {
      if (loaded.digest() == step.artifact) module = &loaded;
    }
    if (module == nullptr) {
      const void* bytes = nullptr;
      size_t size = 0;
      if (source_ == nullptr || source_(context_, step.artifact.c_str(), &bytes, &size) != 0 ||
          bytes == nullptr) {
        return Fail(KILN_BAD_ARTIFACT, "step %d (%s): artifact %s is not to be had", number_,
                    step.entry.c_str(), step.artifact.c_str());
      }
      Module made;
      if (const kiln_code code = made.Load(step.artifact, bytes, size); code != KILN_OK)
        return code;
      plan_.modules.push_back(std::move(made));
      module = &plan_.modules.back();
    }
    *kernel = module->FindEntry(step.entry);
    if (*kernel != nullptr) return KILN_OK;
    return Fail(KILN_BAD_ARTIFACT, "step %d: artifact %s has no entry %s", number_,
                step.artifact.c_str(), step.entry.c_str());
  }

  kiln_code LoadLibrary(const Step& step, GemmType* type) {
    if (const kiln_code code = ResolveGemm(step.entry, type); code != KILN_OK) return code;
    bool good = step.arguments.size() == kLibraryGemmArguments;
    for (int i = 0; good && i < kLibraryGemmArguments; ++i) {
      const Argument& argument = step.arguments[i];
      const bool pointer =
          argument.kind == ArgumentKind::kTensor || argument.kind == ArgumentKind::kWorkspace;
      good = i < 3 ? pointer : !pointer && !argument.is_float;
    }
    if (good) return KILN_OK;
    return Fail(KILN_INVALID_PLAN, "step %d (%s): takes %d arguments: A, B, C, then integers",
                number_, step.entry.c_str(), kLibraryGemmArguments);
  }

  kiln_code LoadFill(const Step& step, LoadedStep* loaded) {
    const auto bytes = step.attributes.find("bytes");
    if (step.arguments.size() != 1 || bytes == step.attributes.end() || bytes->second < 0) {
      return Fail(KILN_INVALID_PLAN,
                  "step %d: a fill has one argument and an attribute bytes of at least 0", number_);
    }
    const Argument& target = step.arguments[0];
    int64_t size = -1;
    if (target.kind == ArgumentKind::kTensor) {
      size = plan_.plan.tensors[target.index].span_bytes;
    } else if (target.kind == ArgumentKind::kWorkspace) {
      size = target.persistent ? plan_.plan.persistent_bytes : plan_.plan.workspace_bytes;
    }
    if (size < 0 || bytes->second > size - target.offset) {
      return Fail(KILN_INVALID_PLAN, "step %d: a fill of %lld bytes at offset %lld into %lld",
                  number_, static_cast<Long>(bytes->second), static_cast<Long>(target.offset),
                  static_cast<Long>(size));
    }
    loaded->fill_bytes = bytes->second;
    // Persistent memory is written at prepack and only read afterwards.
    loaded->at_prepack = target.kind == ArgumentKind::kWorkspace && target.persistent;
    return KILN_OK;
  }

  // A prepack step has no launch's workspace to write to.
  kiln_code CheckPrepack(const Step& step) {
    for (const Argument& argument : step.arguments) {
      if (argument.kind == ArgumentKind::kWorkspace && !argument.persistent) {
        return Fail(KILN_INVALID_PLAN,
                    "step %d (%s): a prepack step uses the launch's workspace; allowed: persistent "
                    "memory",
                    number_, step.entry.c_str());
      }
    }
    return KILN_OK;
  }

  kiln_plan& plan_;
  const kiln_artifact_source source_;
  void* const context_;
  int number_ = 0;
};

kiln_code LoadPlan(const std::string& text, kiln_artifact_source source, void* context,
                   kiln_plan* loaded) {
  std::string error;
  if (!ParsePlan(text, &loaded->plan, &error))
    return Fail(KILN_INVALID_PLAN, "plan: %s", error.c_str());
  const Plan& plan = loaded->plan;
  if (const kiln_code code = CheckDevice(plan, &loaded->threads); code != KILN_OK) return code;
  if (const kiln_code code = CheckSizes(plan); code != KILN_OK) return code;
  loaded->steps.resize(plan.steps.size());
  StepLoader loader(loaded, source, context);
  for (size_t i = 0; i < plan.steps.size(); ++i) {
    loaded->steps[i].step = plan.steps[i];
    if (const kiln_code code = loader.Load(static_cast<int>(i), &loaded->steps[i]); code != KILN_OK)
      return code;
  }
  if (!loaded->persistent.Map(plan.persistent_bytes)) {
    return Fail(KILN_OUT_OF_MEMORY, "plan: no memory for %lld persistent bytes",
                static_cast<Long>(plan.persistent_bytes));
  }
  return KILN_OK;
}

bool HasTensor(const kiln_plan* plan, int tensor) {
  return plan != nullptr && tensor >= 0 && tensor < static_cast<int>(plan->plan.tensors.size());
}

}  // namespace
}  // namespace kiln::runtime

extern "C" kiln_code kiln_plan_load(const char* text, size_t size, kiln_artifact_source source,
                                    void* context, kiln_plan** plan) {
  using kiln::runtime::Fail;
  if (plan == nullptr) return Fail(KILN_BAD_ARGUMENT, "kiln_plan_load: plan is null");
  *plan = nullptr;
  if (text == nullptr) return Fail(KILN_BAD_ARGUMENT, "kiln_plan_load: text is null");
  try {
    auto loaded = std::make_unique<kiln_plan>();
    const kiln_code code =
        kiln::runtime::LoadPlan(std::string(text, size), source, context, loaded.get());
    if (code == KILN_OK) *plan = loaded.release();
    return code;
  } catch (const std::bad_alloc&) {
    return Fail(KILN_OUT_OF_MEMORY, "kiln_plan_load: out of memory");
  }
}

extern "C" void kiln_plan_destroy(kiln_plan* plan) { delete plan; }

extern "C" int kiln_plan_tensors(const kiln_plan* plan) {
  return plan == nullptr ? 0 : static_cast<int>(plan->plan.tensors.size());
}

extern "C" int64_t kiln_plan_alignment(const kiln_plan* plan, int tensor) {
  return kiln::runtime::HasTensor(plan, tensor) ? plan->plan.tensors[tensor].alignment : 0;
}

extern "C" int64_t kiln_plan_span_bytes(const kiln_plan* plan, int tensor) {
  return kiln::runtime::HasTensor(plan, tensor) ? plan->plan.tensors[tensor].span_bytes : 0;
}

extern "C" int64_t kiln_plan_workspace_bytes(const kiln_plan* plan) {
  return plan == nullptr ? 0 : plan->plan.workspace_bytes;
}

extern "C" int64_t kiln_plan_persistent_bytes(const kiln_plan* plan) {
  return plan == nullptr ? 0 : plan->plan.persistent_bytes;
}
