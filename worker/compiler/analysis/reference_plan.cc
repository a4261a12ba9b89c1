// SPDX-License-Identifier: Apache-2.0
#include "worker/compiler/analysis/reference_plan.h"

#include <algorithm>

namespace kiln::compiler {
namespace {

constexpr int64_t kMostKept = int64_t{1}
                              << 31;  // elements; more comes from ranges that only data bounds

}  // namespace

int64_t Box::elements() const {
  int64_t product = 1;
  for (int64_t e : extent) {
    if (__builtin_mul_overflow(product, e, &product)) return int64_t{1} << 62;
  }
  return product;
}

void ReferencePlan::Widen(const Term& term, const std::vector<Interval>& scope) {
  std::vector<Interval>& hull = hulls_[term.node];
  for (size_t i = 0; i < term.vars.size(); ++i) {
    const Interval& add = scope[term.vars[i]];
    if (add.lo > add.hi) continue;
    Interval& own = hull[i];
    own = own.lo > own.hi ? add : Interval{std::min(own.lo, add.lo), std::max(own.hi, add.hi)};
  }
}

ReferencePlan::ReferencePlan(const Graph& graph) : graph_(graph) {
  const size_t count = graph.nodes.size();
  hulls_.resize(count);
  boxes_.resize(count);
  kept_.resize(count);
  reads_data_.resize(count);
  for (size_t i = 0; i < count; ++i) {
    const Node& node = graph.nodes[i];
    hulls_[i].assign(node.free_vars, Interval{1, 0});
    reads_data_[i] = node.op == Op::kRead;
    for (const Term& argument : node.args) {
      if (reads_data_[argument.node]) reads_data_[i] = true;
    }
    for (const Range& range : node.bound) {
      if (reads_data_[range.lo.node] || reads_data_[range.hi.node]) reads_data_[i] = true;
    }
  }
  for (const Tensor& tensor : graph.tensors) {
    if (tensor.definition.node < 0) continue;
    std::vector<Interval> axes;
    for (int64_t extent : StaticShape(graph, tensor)) axes.push_back({0, extent - 1});
    Widen(tensor.definition, axes);
  }
  for (size_t i = count; i-- > 0;) {  // users before arguments
    const Node& node = graph.nodes[i];
    std::vector<Interval> scope = hulls_[i];
    for (const Range& range : node.bound) {
      Widen(range.lo, scope);
      Widen(range.hi, scope);
      scope.push_back({Bounds(graph, range.lo, scope).lo, Bounds(graph, range.hi, scope).hi - 1});
    }
    for (const Term& argument : node.args) Widen(argument, scope);
    Box& box = boxes_[i];
    for (int v = 0; v < node.free_vars; ++v) {
      // A softmax row is the same wherever it is read.
      const Interval hull = hulls_[i][v];
      const bool is_place = IsPlace(node, v);
      box.lo.push_back(is_place ? 0 : hull.lo);
      box.extent.push_back(is_place ? 1 : std::max<int64_t>(0, hull.hi - hull.lo + 1));
    }
    kept_[i] = node.op == Op::kSoftmax || (node.op == Op::kReduce && box.elements() <= kMostKept);
  }
}

bool IsPlace(const Node& node, int variable) {
  auto uses = [variable](const std::vector<int>& vars) {
    return std::count(vars.begin(), vars.end(), variable) != 0;
  };
  if (node.op != Op::kSoftmax || !uses(node.at) || uses(node.args[0].vars)) return false;
  for (const Range& range : node.bound) {
    if (uses(range.lo.vars) || uses(range.hi.vars)) return false;
  }
  return true;
}

std::vector<NodeId> ReferencePlan::KeptBelow(const Term& definition) const {
  std::vector<bool> reached(graph_.nodes.size());
  reached[definition.node] = true;
  for (NodeId i = definition.node; i >= 0; --i) {
    if (!reached[i]) continue;
    for (const Term& argument : graph_.nodes[i].args) reached[argument.node] = true;
    for (const Range& range : graph_.nodes[i].bound) {
      reached[range.lo.node] = reached[range.hi.node] = true;
    }
  }
  std::vector<NodeId> kept;
  for (size_t i = 0; i < reached.size(); ++i) {
    if (reached[i] && kept_[i]) kept.push_back(static_cast<NodeId>(i));
  }
  return kept;
}

}  // namespace kiln::compiler
