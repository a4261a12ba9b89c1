// SPDX-License-Identifier: Apache-2.0
#include "proto/contract/language/accumulate.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "proto/contract/error.h"

namespace kiln::language {
namespace {

bool IsAccumulator(DType type) {
  return type == DType::kF32 || type == DType::kF16 || type == DType::kBf16 || type == DType::kI32;
}

bool Adds(const Node& node) {
  return node.op == Op::kReduce &&
         (node.reduce == ReduceOp::kSum || node.reduce == ReduceOp::kProd ||
          node.reduce == ReduceOp::kAvg);
}

bool Narrower(DType type, DType than) {
  return IsFloat(type) == IsFloat(than) && Bits(type) < Bits(than);
}

// Rewrites the nodes below a root; equal nodes of other outputs keep their accumulator. Reads of
// tensors end it: what fills those has its own accumulator.
class Rewriter {
 public:
  Rewriter(NodePool* pool, DType type) : pool_(*pool), type_(type) {}

  NodeId Run(NodeId root) {
    // Arguments come before users, hence the nodes below the root are found from the end and
    // rewritten from the start.
    std::vector<bool> below(root + 1, false);
    below[root] = true;
    for (NodeId id = root; id >= 0; --id) {
      if (!below[id]) continue;
      ForEachTerm(pool_.at(id), [&](const Term& term) { below[term.node] = true; });
    }
    std::vector<NodeId> rewritten(root + 1, -1);
    for (NodeId id = 0; id <= root; ++id) {
      if (!below[id]) continue;
      Node node = pool_.at(id);
      ForEachTerm(node, [&](Term& term) { term.node = rewritten[term.node]; });
      if (Adds(node) && node.accumulator == type_) applies_ = true;
      if (Adds(node) && Narrower(type_, node.accumulator)) {
        node.accumulator = type_;
        applies_ = true;
      }
      rewritten[id] = pool_.Intern(std::move(node));
    }
    return rewritten[root];
  }

  bool applies() const { return applies_; }

 private:
  template <typename AnyNode, typename Visit>
  static void ForEachTerm(AnyNode& node, Visit visit) {
    for (auto& term : node.args) visit(term);
    for (auto& range : node.bound) {
      visit(range.lo);
      visit(range.hi);
    }
  }

  NodePool& pool_;
  DType type_;
  bool applies_ = false;
};

}  // namespace

absl::Status ApplyAccumulators(const Policy& policy, const Scope& scope, Built* built) {
  for (const auto& [name, type] : policy.accumulate) {
    std::string field = absl::StrCat("policy.accumulate.", name);
    std::string outputs;
    Definition* definition = nullptr;
    for (Definition& candidate : built->definitions) {
      const TensorSymbol& tensor = scope.tensors[candidate.tensor];
      if (tensor.kind != TensorKind::kOutput) continue;
      absl::StrAppend(&outputs, outputs.empty() ? "" : ", ", tensor.name);
      if (tensor.name == name) definition = &candidate;
    }
    if (definition == nullptr) {
      return InvalidField("UNKNOWN_OUTPUT", field, Print(type), "of a tensor that is no output",
                          outputs);
    }
    if (!IsAccumulator(type)) {
      return InvalidField("INVALID_ACCUMULATOR", field, Print(type), "no accumulator",
                          "f32, f16, bf16, i32");
    }
    Rewriter rewriter(&built->pool, type);
    definition->value.node = rewriter.Run(definition->value.node);
    if (!rewriter.applies()) {
      return InvalidField(
          "INVALID_ACCUMULATOR", field, Print(type),
          "not narrower than any accumulator of the output",
          "a narrower float than that of a sum, prod or avg of the output, or i32 for one of i64");
    }
  }
  return absl::OkStatus();
}

}  // namespace kiln::language
