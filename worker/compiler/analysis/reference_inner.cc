// SPDX-License-Identifier: Apache-2.0
#include "worker/compiler/analysis/reference_inner.h"

#include <algorithm>
#include <optional>
#include <set>

#include "worker/compiler/analysis/epilogue_walk.h"

namespace kiln::compiler {
namespace {

constexpr size_t kMostVisits = 5000;
constexpr int64_t kLeastExtent = 4;

class StrideCheck {
 public:
  StrideCheck(const ReferenceScene& scene, int variable, int variables)
      : scene_(scene), variable_(variable), variables_(variables) {}

  // Whether everything below the term is read with stride 0 or 1 along the variable.
  bool Fits(const Term& term);

 private:
  bool FitsRead(const Node& node, const Term& term) const;
  bool FitsKept(const Term& term) const;

  const ReferenceScene& scene_;
  const int variable_, variables_;
  std::set<std::pair<NodeId, std::vector<int>>> seen_;
};

bool StrideCheck::FitsRead(const Node& node, const Term& term) const {
  const Tensor& tensor = scene_.graph.tensors[node.index];
  const std::vector<int64_t> shape = StaticShape(scene_.graph, tensor);
  int64_t packed = 1, total = 0;
  for (size_t axis = shape.size(); axis-- > 0;) {
    const bool computed = tensor.definition.node >= 0;
    const int64_t stride = computed ? packed : tensor.strides[axis];
    packed *= shape[axis];
    std::optional<Affine> subscript = scene_.affine.OfTerm(node.args[axis], variables_, &term.vars);
    if (!subscript) return false;
    total += subscript->coefficients[variable_] * stride;
  }
  return total == 0 || total == 1;
}

bool StrideCheck::FitsKept(const Term& term) const {
  const Box& box = scene_.plan.BoxOf(term.node);
  int64_t stride = 1, total = 0;
  for (size_t v = term.vars.size(); v-- > 0;) {
    if (term.vars[v] == variable_) total += stride;
    stride *= box.extent[v];
  }
  return total == 0 || total == 1;
}

bool StrideCheck::Fits(const Term& term) {
  if (!seen_.insert({term.node, term.vars}).second) return true;
  if (seen_.size() > kMostVisits) return false;
  if (std::count(term.vars.begin(), term.vars.end(), variable_) == 0) return true;
  const Node& node = scene_.graph.nodes[term.node];
  if (node.op == Op::kRead) {
    if (!FitsRead(node, term)) return false;
    return !node.has_else ||
           Fits({node.args.back().node, Compose(node.args.back().vars, term.vars)});
  }
  if (node.op == Op::kSoftmax) return false;
  if (node.op == Op::kReduce) return scene_.plan.IsKept(term.node) && FitsKept(term);
  for (const Term& argument : node.args) {
    if (!Fits({argument.node, Compose(argument.vars, term.vars)})) return false;
  }
  return true;
}

}  // namespace

int ChooseInner(const ReferenceScene& scene, NodeId reduction) {
  const Node& node = scene.graph.nodes[reduction];
  const Box& box = scene.plan.BoxOf(reduction);
  const int variables = node.free_vars + static_cast<int>(node.bound.size());
  for (int v = node.free_vars - 1; v >= 0; --v) {
    if (box.extent[v] < kLeastExtent) continue;
    bool free = true;
    for (const Range& range : node.bound) {
      for (const Term* end : {&range.lo, &range.hi}) {
        free &= std::count(end->vars.begin(), end->vars.end(), v) == 0;
      }
    }
    if (free && StrideCheck(scene, v, variables).Fits(node.args[0])) return v;
  }
  return -1;
}

}  // namespace kiln::compiler
