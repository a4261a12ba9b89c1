// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdlib>
#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/kiln_client.h"
#include "proto/contract/error.h"

namespace kiln::client {
namespace {

constexpr int64_t kWorkspaceAlignment = 64;

// A runtime's error as a status.
absl::Status ToStatus(kiln_code code, absl::string_view context) {
  if (code == KILN_OK) return absl::OkStatus();
  const std::string message = absl::StrCat(context, ": ", kiln_error());
  switch (code) {
    case KILN_BAD_ARGUMENT:
      return MakeError(absl::StatusCode::kInvalidArgument, message, {"BAD_ARGUMENT", {}});
    case KILN_UNSUPPORTED:
      return MakeError(absl::StatusCode::kFailedPrecondition, message, {"PLAN_UNSUPPORTED", {}});
    case KILN_BAD_ARTIFACT:
      return MakeError(absl::StatusCode::kDataLoss, message, {"BAD_ARTIFACT", {}});
    case KILN_OUT_OF_MEMORY:
      return MakeError(absl::StatusCode::kResourceExhausted, message, {"OUT_OF_MEMORY", {}});
    default:
      return MakeError(absl::StatusCode::kInternal, message, {"INVALID_PLAN", {}});
  }
}

// Artifacts by digest, alive until the plan is loaded.
int GiveArtifact(void* context, const char* digest, const void** bytes, size_t* size) {
  const auto& artifacts = *static_cast<const std::map<std::string, std::string>*>(context);
  const auto found = artifacts.find(digest);
  if (found == artifacts.end()) return 1;
  *bytes = found->second.data();
  *size = found->second.size();
  return 0;
}

absl::Status WrongTensor(const Tensor& tensor, absl::string_view field, absl::string_view value,
                         absl::string_view wanted) {
  return InvalidField("TENSOR_MISMATCH", absl::StrCat("tensor ", tensor.name, ": ", field), value,
                      "not the workload's", wanted);
}

std::vector<int64_t> PackedStrides(const std::vector<int64_t>& shape) {
  std::vector<int64_t> strides(shape.size(), 1);
  for (int i = static_cast<int>(shape.size()) - 2; i >= 0; --i)
    strides[i] = strides[i + 1] * shape[i + 1];
  return strides;
}

std::string Words(const std::vector<int64_t>& numbers) {
  return absl::StrCat("[", absl::StrJoin(numbers, ","), "]");
}

absl::Status CheckTensor(const Graph& graph, const Tensor& tensor, const TensorView& view) {
  const std::vector<int64_t> shape = StaticShape(graph, tensor);
  if (view.type != tensor.type)
    return WrongTensor(tensor, "type", Print(view.type), Print(tensor.type));
  if (view.shape != shape) return WrongTensor(tensor, "shape", Words(view.shape), Words(shape));
  const std::vector<int64_t> strides = view.strides.empty() ? PackedStrides(shape) : view.strides;
  const std::vector<int64_t>& wanted =
      tensor.strides.empty() ? PackedStrides(shape) : tensor.strides;
  if (strides.size() != shape.size())
    return WrongTensor(tensor, "strides", Words(strides), Words(wanted));
  for (size_t axis = 0; axis < shape.size(); ++axis) {
    // Strides of extents 0 and 1 do not count.
    if (shape[axis] > 1 && strides[axis] != wanted[axis])
      return WrongTensor(tensor, "strides", Words(strides), Words(wanted));
  }
  if (SpanElements(graph, tensor) > 0 && view.data == nullptr)
    return WrongTensor(tensor, "pointer", "null", "memory");
  if (reinterpret_cast<uintptr_t>(view.data) % tensor.alignment != 0) {
    return WrongTensor(tensor, "pointer",
                       absl::StrCat(absl::Hex(reinterpret_cast<uintptr_t>(view.data))),
                       absl::StrCat("multiples of ", tensor.alignment, " bytes"));
  }
  return absl::OkStatus();
}

struct Extent {
  const char* begin;
  const char* end;
};

Extent MemoryOf(const Graph& graph, const Tensor& tensor, const TensorView& view) {
  const char* begin = static_cast<const char*>(view.data);
  return {begin, begin + BytesOf(tensor.type, SpanElements(graph, tensor))};
}

// An output may share memory only with what it is declared to alias, and then all of it.
absl::Status CheckOverlaps(const Graph& graph, const std::vector<TensorView>& views) {
  for (size_t i = 0; i < views.size(); ++i) {
    const Tensor& output = graph.tensors[i];
    if (output.kind != TensorKind::kOutput) continue;
    if (output.alias_of >= 0 && views[i].data != views[output.alias_of].data) {
      return WrongTensor(
          output, "pointer", "another",
          absl::StrCat("that of ", graph.tensors[output.alias_of].name, ", its alias"));
    }
    const Extent written = MemoryOf(graph, output, views[i]);
    for (size_t j = 0; j < views.size(); ++j) {
      if (i == j || output.alias_of == static_cast<int>(j) ||
          graph.tensors[j].alias_of == static_cast<int>(i))
        continue;
      const Extent other = MemoryOf(graph, graph.tensors[j], views[j]);
      if (written.begin < other.end && other.begin < written.end) {
        return WrongTensor(output, "memory", absl::StrCat("overlapping ", graph.tensors[j].name),
                           "memory of its own, or an alias in the workload");
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<ThreadPool>> ThreadPool::Make(int threads, bool pin) {
  kiln_pool* pool = nullptr;
  KILN_RETURN_IF_ERROR(ToStatus(kiln_pool_create(threads, pin ? 1 : 0, &pool), "threads"));
  return std::unique_ptr<ThreadPool>(new ThreadPool(pool));
}

ThreadPool::~ThreadPool() { kiln_pool_destroy(pool_); }

absl::StatusOr<std::unique_ptr<LoadedKernel>> LoadedKernel::Load(const WorkloadSpec& spec,
                                                                 const Record& record,
                                                                 const ArtifactSource& source) {
  KILN_ASSIGN_OR_RETURN(Workload workload, CheckWorkload(spec));
  if (workload.signature != record.key.signature || workload.canonical != record.canonical) {
    return MakeError(
        absl::StatusCode::kFailedPrecondition,
        absl::StrCat("record ", record.id, " is of the workload ", record.key.signature,
                     ", not of ", workload.signature),
        {"WRONG_WORKLOAD", {{"record", record.id}, {"signature", workload.signature}}});
  }
  std::map<std::string, std::string> artifacts;
  for (const Step& step : record.plan.steps) {
    if (step.artifact.empty() || artifacts.count(step.artifact) > 0) continue;
    KILN_ASSIGN_OR_RETURN(artifacts[step.artifact], source(step.artifact));
  }
  const std::string text = PrintPlan(record.plan);
  kiln_plan* plan = nullptr;
  const kiln_code code = kiln_plan_load(text.data(), text.size(), GiveArtifact, &artifacts, &plan);
  KILN_RETURN_IF_ERROR(ToStatus(code, absl::StrCat("record ", record.id)));
  return std::unique_ptr<LoadedKernel>(new LoadedKernel(std::move(workload), plan));
}

LoadedKernel::Binding::~Binding() { std::free(workspace_); }

LoadedKernel::~LoadedKernel() { kiln_plan_destroy(plan_); }

absl::StatusOr<std::unique_ptr<LoadedKernel::Binding>> LoadedKernel::Bind(
    const std::vector<TensorView>& tensors) const {
  const Graph& graph = workload_.graph;
  if (!graph.is_static()) {
    return MakeError(absl::StatusCode::kUnimplemented,
                     "dims: tensors of dynamic shape cannot be bound yet; bind every dim",
                     {"DYNAMIC_DIMS", {}});
  }
  const int count = kiln_plan_tensors(plan_);
  if (static_cast<int>(tensors.size()) != count || count > static_cast<int>(graph.tensors.size())) {
    return InvalidField("TENSOR_MISMATCH", "tensors", absl::StrCat(tensors.size()),
                        "not the workload's number", absl::StrCat(count));
  }
  std::unique_ptr<Binding> binding(new Binding);
  for (int i = 0; i < count; ++i) {
    KILN_RETURN_IF_ERROR(CheckTensor(graph, graph.tensors[i], tensors[i]));
    binding->pointers_.push_back(tensors[i].data);
  }
  KILN_RETURN_IF_ERROR(CheckOverlaps(graph, tensors));
  if (const int64_t bytes = workspace_bytes(); bytes > 0) {
    binding->workspace_ =
        std::aligned_alloc(kWorkspaceAlignment, (bytes + kWorkspaceAlignment - 1) /
                                                    kWorkspaceAlignment * kWorkspaceAlignment);
    if (binding->workspace_ == nullptr) {
      return MakeError(absl::StatusCode::kResourceExhausted,
                       absl::StrCat("no memory for a workspace of ", bytes, " bytes"),
                       {"OUT_OF_MEMORY", {{"bytes", absl::StrCat(bytes)}}});
    }
  }
  return binding;
}

absl::Status LoadedKernel::Prepack(const Binding& binding, const ThreadPool& pool) {
  KILN_RETURN_IF_ERROR(
      ToStatus(kiln_plan_prepack(plan_, pool.get(), binding.pointers_.data(), nullptr),
               "packing constants"));
  prepacked_ = true;
  return absl::OkStatus();
}

absl::Status LoadedKernel::Launch(const Binding& binding, const ThreadPool& pool) {
  if (!prepacked_ && kiln_plan_persistent_bytes(plan_) > 0)
    KILN_RETURN_IF_ERROR(Prepack(binding, pool));
  const kiln_code code =
      kiln_plan_launch(plan_, pool.get(), binding.pointers_.data(), binding.workspace_, nullptr);
  return code == KILN_OK ? absl::OkStatus() : ToStatus(code, "launch");
}

}  // namespace kiln::client
