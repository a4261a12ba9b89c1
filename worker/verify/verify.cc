// SPDX-License-Identifier: Apache-2.0
#include "worker/verify/verify.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "worker/verify/guarded_buffer.h"
#include "worker/verify/verdict.h"

namespace kiln::verify {
namespace {

constexpr char kMethod[] = "f64-reference/1", kProductMethod[] = "freivalds/1";

// NaN in every float type, and two patterns that are ordinary numbers: an element that is left
// unwritten cannot equal what is wanted in all of them.
constexpr uint8_t kFills[] = {0xFF, 0xA5, 0x5A};
constexpr Placement kPlacements[] = {Placement::kEnd, Placement::kAligned, Placement::kStart};

// The tensors of one workload in guarded memory.
class TensorTable {
 public:
  static absl::StatusOr<TensorTable> Make(const Workload& workload);

  // Restores inputs, poisons outputs and places everything anew.
  void Prepare(const ReferenceSet& set, Placement placement, uint8_t fill);
  std::vector<void*> pointers();
  // Empty, or what the candidate wrote where it may not.
  std::string FindDamage(const ReferenceSet& set, uint8_t fill);
  // An output as it stands, in the order of outputs.
  compiler::HostTensor Output(size_t output) const;

 private:
  struct Slot {
    int tensor;
    size_t buffer;  // an aliased output has its input's
    bool is_output;
  };

  explicit TensorTable(const Graph& graph) : graph_(&graph) {}

  const Graph* graph_;
  std::vector<Slot> slots_;
  std::vector<GuardedBuffer> buffers_;
};

absl::StatusOr<TensorTable> TensorTable::Make(const Workload& workload) {
  TensorTable table(workload.graph);
  for (size_t t = 0; t < workload.graph.tensors.size(); ++t) {
    const Tensor& tensor = workload.graph.tensors[t];
    if (tensor.kind == TensorKind::kTemporary) continue;
    const bool is_output = tensor.kind == TensorKind::kOutput;
    size_t buffer = table.buffers_.size();
    if (tensor.alias_of >= 0) {
      for (const Slot& slot : table.slots_) {
        if (slot.tensor == tensor.alias_of) buffer = slot.buffer;
      }
    } else {
      const int64_t bytes = BytesOf(tensor.type, SpanElements(workload.graph, tensor));
      auto memory = GuardedBuffer::Make(tensor.name, bytes, tensor.alignment);
      if (!memory.ok()) return memory.status();
      table.buffers_.push_back(*std::move(memory));
    }
    table.slots_.push_back({static_cast<int>(t), buffer, is_output});
  }
  return table;
}

void TensorTable::Prepare(const ReferenceSet& set, Placement placement, uint8_t fill) {
  for (GuardedBuffer& buffer : buffers_) {
    buffer.Place(placement);
    buffer.SetCanary();
  }
  size_t input = 0;
  for (const Slot& slot : slots_) {
    GuardedBuffer& buffer = buffers_[slot.buffer];
    if (!slot.is_output) {
      const std::vector<uint8_t>& bytes = set.inputs[input++].bytes;
      if (!bytes.empty()) std::memcpy(buffer.data(), bytes.data(), bytes.size());
    } else if (graph_->tensors[slot.tensor].alias_of < 0 && buffer.bytes() > 0) {
      std::memset(buffer.data(), fill, static_cast<size_t>(buffer.bytes()));
    }
  }
}

std::vector<void*> TensorTable::pointers() {
  std::vector<void*> pointers;
  for (const Slot& slot : slots_) pointers.push_back(buffers_[slot.buffer].data());
  return pointers;
}

compiler::HostTensor TensorTable::Output(size_t output) const {
  for (const Slot& slot : slots_) {
    if (!slot.is_output || output-- != 0) continue;
    const Tensor& tensor = graph_->tensors[slot.tensor];
    compiler::HostTensor result{tensor.type, StaticShape(*graph_, tensor), tensor.strides, {}};
    const GuardedBuffer& buffer = buffers_[slot.buffer];
    result.bytes.assign(buffer.data(), buffer.data() + buffer.bytes());
    return result;
  }
  return {};
}

std::string TensorTable::FindDamage(const ReferenceSet& set, uint8_t fill) {
  std::vector<bool> aliased(buffers_.size());
  for (const Slot& slot : slots_) {
    if (graph_->tensors[slot.tensor].alias_of >= 0) aliased[slot.buffer] = true;
  }
  size_t input = 0, output = 0;
  for (const Slot& slot : slots_) {
    const GuardedBuffer& buffer = buffers_[slot.buffer];
    const std::string& name = graph_->tensors[slot.tensor].name;
    if (std::string canary = buffer.CheckCanary(); !canary.empty()) {
      return absl::StrCat(canary, " of ", name);
    }
    if (slot.is_output) {
      const compiler::HostTensor got = Output(output++);
      if (aliased[slot.buffer]) continue;
      if (int64_t at = FindWrittenPadding(got, fill); at >= 0) {
        return absl::StrCat("wrote byte ", at, " of ", name, ", which is padding");
      }
      continue;
    }
    const std::vector<uint8_t>& bytes = set.inputs[input++].bytes;
    if (aliased[slot.buffer]) continue;
    const auto changed = std::mismatch(bytes.begin(), bytes.end(), buffer.data()).first;
    if (changed != bytes.end()) {
      return absl::StrCat("wrote byte ", changed - bytes.begin(), " of the input ", name);
    }
  }
  return "";
}

struct Run {
  SetKind kind;
  Placement placement;
  uint8_t fill;
};

// The references cost more than launches: the first set runs in every placement, the others take
// turns.
std::vector<Run> RunsOf(const Workload& workload, Depth depth) {
  std::vector<Run> runs;
  int turn = 0;
  for (SetKind kind : SetKinds(workload)) {
    if (depth == Depth::kScreen && kind != SetKind::kSmallInteger && kind != SetKind::kRandom) {
      continue;
    }
    if (kind == SetKind::kSmallInteger) {
      for (int i = 0; i < 3; ++i) runs.push_back({kind, kPlacements[i], kFills[i]});
      continue;
    }
    // NaN is no poison where NaN is wanted.
    const uint8_t fill = kind == SetKind::kNonFinite ? kFills[1] : kFills[turn % 3];
    runs.push_back({kind, kPlacements[turn % 3], fill});
    ++turn;
  }
  return runs;
}

std::string OutputName(const Graph& graph, size_t output) {
  for (const Tensor& tensor : graph.tensors) {
    if (tensor.kind == TensorKind::kOutput && output-- == 0) return tensor.name;
  }
  return "";
}

}  // namespace

absl::StatusOr<VerifyResult> VerifyPlan(const Workload& workload, ReferenceCache& references,
                                        const Launch& launch, Depth depth) {
  auto tensors = TensorTable::Make(workload);
  if (!tensors.ok()) return tensors.status();
  VerifyResult result;
  result.verification.method = references.product() ? kProductMethod : kMethod;
  result.verification.seed = references.seed();
  result.verification.tolerance = 1;  // max_error is a share of what is allowed
  auto fail = [&](Stage why, SetKind kind, const std::string& reason) {
    result.stage = why;
    result.reason = absl::StrCat(reason, " (", Print(kind), " inputs)");
    return result;
  };
  for (const Run& run : RunsOf(workload, depth)) {
    auto set = references.Get(run.kind);
    if (!set.ok()) return set.status();
    tensors->Prepare(**set, run.placement, run.fill);
    if (absl::Status status = launch(tensors->pointers()); !status.ok()) {
      return fail(Stage::kLaunch, run.kind, std::string(status.message()));
    }
    if (std::string damage = tensors->FindDamage(**set, run.fill); !damage.empty()) {
      return fail(Stage::kOutOfBounds, run.kind, damage);
    }
    for (size_t o = 0; o < (*set)->exact.size(); ++o) {
      const compiler::HostTensor got = tensors->Output(o);
      const bool exact = (*set)->exact[o];
      const Verdict verdict =
          references.product()
              ? references.product()->Judge((*set)->inputs, got, exact, references.seed())
              : Judge(OutputName(workload.graph, o), got, (*set)->outputs[o], exact,
                      workload.policy);
      if (!verdict.right) return fail(Stage::kMismatch, run.kind, verdict.reason);
      result.verification.max_error = std::max(result.verification.max_error, verdict.max_error);
    }
    const std::string name(Print(run.kind));
    std::vector<std::string>& names = result.verification.set_names;
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
    result.verification.sets = static_cast<int>(names.size());
  }
  return result;
}

}  // namespace kiln::verify
