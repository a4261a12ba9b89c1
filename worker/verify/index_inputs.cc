// SPDX-License-Identifier: Apache-2.0
#include "worker/verify/index_inputs.h"

#include <algorithm>
#include <functional>
#include <set>

namespace kiln::verify {
namespace {

// Where a range's bound is data and nothing in its body says how far it may go.
constexpr int64_t kFreeBound = 8;

class RoleFinder {
 public:
  explicit RoleFinder(const Graph& graph) : graph_(graph), roles_(graph.tensors.size()) {}

  std::vector<std::optional<IndexRole>> Run() {
    for (const Node& node : graph_.nodes) {
      if (node.op == Op::kRead) VisitRead(node);
      for (size_t i = 0; i < node.bound.size(); ++i) VisitRange(node, i);
    }
    return std::move(roles_);
  }

 private:
  void VisitRead(const Node& node);
  void VisitRange(const Node& node, size_t which);
  // The integer inputs that are read below a term.
  std::set<int> InputsBelow(const Term& term) const;
  // The least extent of an axis that the variable subscripts alone below the term, or -1.
  int64_t LeastExtent(const Term& term, int variable) const;
  void Narrow(int tensor, int64_t least, int64_t greatest, bool ascending);

  const Graph& graph_;
  std::vector<std::optional<IndexRole>> roles_;
};

void RoleFinder::Narrow(int tensor, int64_t least, int64_t greatest, bool ascending) {
  std::optional<IndexRole>& role = roles_[tensor];
  if (!role) {
    role = IndexRole{least, greatest, ascending};
    return;
  }
  role->least = std::max(role->least, least);
  role->greatest = std::min(role->greatest, greatest);
  role->ascending |= ascending;
}

std::set<int> RoleFinder::InputsBelow(const Term& term) const {
  std::set<int> inputs;
  std::set<NodeId> seen;
  std::function<void(NodeId)> visit = [&](NodeId id) {
    if (!seen.insert(id).second) return;
    const Node& node = graph_.nodes[id];
    if (node.op == Op::kRead) {
      const Tensor& tensor = graph_.tensors[node.index];
      if (tensor.definition.node >= 0) {
        visit(tensor.definition.node);
      } else if (!IsFloat(tensor.type)) {
        inputs.insert(node.index);
      }
      return;  // its own subscripts are visited as a read of their own
    }
    for (const Term& argument : node.args) visit(argument.node);
  };
  visit(term.node);
  return inputs;
}

void RoleFinder::VisitRead(const Node& node) {
  const Tensor& tensor = graph_.tensors[node.index];
  const std::vector<int64_t> shape = StaticShape(graph_, tensor);
  for (size_t axis = 0; axis < shape.size(); ++axis) {
    const bool direct = graph_.nodes[node.args[axis].node].op == Op::kRead;
    for (int input : InputsBelow(node.args[axis])) {
      if (node.has_else) {
        Narrow(input, -2, shape[axis] + 1, false);  // outside is allowed, and must be tried
      } else {
        // Arithmetic around a read is not taken apart: small values are safe in what people write
        // (2*i+1, i+j).
        Narrow(input, 0, std::max<int64_t>(0, direct ? shape[axis] - 1 : (shape[axis] - 1) / 4),
               false);
      }
    }
  }
}

int64_t RoleFinder::LeastExtent(const Term& term, int variable) const {
  int64_t least = -1;
  std::set<std::pair<NodeId, int>> seen;
  std::function<void(NodeId, int)> visit = [&](NodeId id, int v) {
    if (!seen.insert({id, v}).second) return;
    const Node& node = graph_.nodes[id];
    for (size_t i = 0; i < node.args.size(); ++i) {
      const Term& argument = node.args[i];
      for (size_t own = 0; own < argument.vars.size(); ++own) {
        if (argument.vars[own] != v) continue;
        const bool subscript = node.op == Op::kRead && graph_.nodes[argument.node].op == Op::kVar;
        if (subscript && !node.has_else) {
          const int64_t extent = StaticShape(graph_, graph_.tensors[node.index])[i];
          least = least < 0 ? extent : std::min(least, extent);
        }
        visit(argument.node, static_cast<int>(own));
      }
    }
  };
  for (size_t own = 0; own < term.vars.size(); ++own) {
    if (term.vars[own] == variable) visit(term.node, static_cast<int>(own));
  }
  return least;
}

void RoleFinder::VisitRange(const Node& node, size_t which) {
  std::set<int> inputs = InputsBelow(node.bound[which].lo);
  for (int input : InputsBelow(node.bound[which].hi)) inputs.insert(input);
  if (inputs.empty()) return;
  const int64_t extent = LeastExtent(node.args[0], node.free_vars + static_cast<int>(which));
  for (int input : inputs) Narrow(input, 0, extent < 0 ? kFreeBound : extent, true);
}

}  // namespace

std::vector<std::optional<IndexRole>> FindIndexRoles(const Graph& graph) {
  return RoleFinder(graph).Run();
}

}  // namespace kiln::verify
