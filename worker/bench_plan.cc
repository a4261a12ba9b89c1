// SPDX-License-Identifier: Apache-2.0
#include "worker/bench_plan.h"

#include <string.h>
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/contract/error.h"
#include "worker/verify/inputs.h"

namespace kiln::worker {
namespace {

constexpr int64_t kPage = 4096;
constexpr int64_t kHugePage = int64_t{2} << 20;
constexpr int64_t kLine = 64;

absl::Status ToStatus(kiln_code code) {
  if (code == KILN_OK) return absl::OkStatus();
  if (code == KILN_OUT_OF_MEMORY) return absl::ResourceExhaustedError(kiln_error());
  return absl::FailedPreconditionError(kiln_error());
}

int FindArtifact(void* context, const char* digest, const void** bytes, size_t* size) {
  const auto& artifacts = *static_cast<const std::map<std::string, std::string>*>(context);
  const auto found = artifacts.find(digest);
  if (found == artifacts.end()) return 1;
  *bytes = found->second.data();
  *size = found->second.size();
  return 0;
}

// Cache lines apart from tensor to tensor: the same offset in all pages would make them fight for
// the same sets. A caller who promises less than 16 bytes gets a base that has no more, since that
// is what his kernels will see.
int64_t OffsetOf(const Tensor& tensor, int index) {
  if (tensor.alignment < 16) return (2 * index + 1) * kLine + tensor.alignment;
  return (2 * index + 1) * std::max(kLine, tensor.alignment);
}

}  // namespace

absl::StatusOr<BenchMemory> BenchMemory::Make(int64_t bytes, int64_t offset) {
  BenchMemory memory;
  memory.offset_ = offset;
  memory.mapped_ = (std::max<int64_t>(bytes, 1) + offset + kPage - 1) / kPage * kPage;
  void* mapping =
      mmap(nullptr, memory.mapped_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapping == MAP_FAILED) {
    return absl::ResourceExhaustedError(
        absl::StrCat("no memory for ", bytes, " bytes: ", strerror(errno)));
  }
  memory.mapping_ = mapping;
  if (bytes >= kHugePage) (void)madvise(mapping, memory.mapped_, MADV_HUGEPAGE);
  return memory;
}

BenchMemory::BenchMemory(BenchMemory&& other) noexcept { *this = std::move(other); }

BenchMemory& BenchMemory::operator=(BenchMemory&& other) noexcept {
  std::swap(mapping_, other.mapping_);
  std::swap(mapped_, other.mapped_);
  std::swap(offset_, other.offset_);
  return *this;
}

BenchMemory::~BenchMemory() {
  if (mapping_ != nullptr) munmap(mapping_, mapped_);
}

absl::StatusOr<std::unique_ptr<BenchPlan>> BenchPlan::Load(const PlanFiles& files,
                                                           kiln_pool* pool) {
  kiln_plan* loaded = nullptr;
  auto* artifacts = const_cast<std::map<std::string, std::string>*>(&files.artifacts);
  KILN_RETURN_IF_ERROR(ToStatus(
      kiln_plan_load(files.plan.data(), files.plan.size(), FindArtifact, artifacts, &loaded)));
  std::unique_ptr<BenchPlan> plan(new BenchPlan(loaded, pool));
  if (const int64_t bytes = kiln_plan_workspace_bytes(loaded); bytes > 0) {
    KILN_ASSIGN_OR_RETURN(BenchMemory workspace, BenchMemory::Make(bytes, 0));
    plan->workspace_.push_back(std::move(workspace));
  }
  return plan;
}

BenchPlan::~BenchPlan() { kiln_plan_destroy(plan_); }

absl::Status BenchPlan::Prepack(void* const* tensors) const {
  if (kiln_plan_persistent_bytes(plan_) == 0) return absl::OkStatus();
  return ToStatus(kiln_plan_prepack(plan_, pool_, tensors, nullptr));
}

absl::Status BenchPlan::Launch(void* const* tensors) const {
  void* workspace = workspace_.empty() ? nullptr : workspace_.front().data();
  return ToStatus(kiln_plan_launch(plan_, pool_, tensors, workspace, nullptr));
}

absl::StatusOr<BenchBuffers> BenchBuffers::Make(const Workload& workload, uint64_t seed) {
  BenchBuffers buffers;
  const std::vector<compiler::HostTensor> inputs =
      verify::MakeInputs(workload, verify::SetKind::kRandom, seed);
  int outputs = 0;
  for (const Tensor& tensor : workload.graph.tensors) {
    if (tensor.kind == TensorKind::kTemporary) continue;
    const int index = static_cast<int>(buffers.tensors_.size());
    const bool output = tensor.kind == TensorKind::kOutput;
    const compiler::HostTensor value =
        output ? verify::MakeOutput(workload, outputs++, 0) : inputs[index];
    if (output && tensor.alias_of >= 0) {
      void* const data = buffers.tensors_[tensor.alias_of];
      buffers.changed_.push_back({data, inputs[tensor.alias_of].bytes});
      buffers.tensors_.push_back(data);
      continue;
    }
    const int64_t bytes = static_cast<int64_t>(value.bytes.size());
    KILN_ASSIGN_OR_RETURN(BenchMemory memory, BenchMemory::Make(bytes, OffsetOf(tensor, index)));
    if (bytes > 0) memcpy(memory.data(), value.bytes.data(), value.bytes.size());
    buffers.tensors_.push_back(memory.data());
    buffers.memory_.push_back(std::move(memory));
  }
  return buffers;
}

void BenchBuffers::Restore() const {
  for (const Changed& changed : changed_) {
    if (!changed.bytes.empty()) memcpy(changed.data, changed.bytes.data(), changed.bytes.size());
  }
}

}  // namespace kiln::worker
