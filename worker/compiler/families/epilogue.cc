// SPDX-License-Identifier: Apache-2.0
#include "worker/compiler/families/epilogue.h"

#include <map>

#include "absl/strings/str_cat.h"

namespace kiln::compiler {
namespace {

using tile::Expression;

bool Supported(Op op) {
  switch (op) {
    case Op::kDim:
    case Op::kVar:
    case Op::kFloorDiv:
    case Op::kFloorMod:
    case Op::kReduce:
    case Op::kSoftmax:
      return false;
    default:
      return true;
  }
}

class Converter {
 public:
  Converter(const Graph& graph, const ContractionForm& form) : graph_(graph), form_(form) {}

  absl::StatusOr<Expression> Run() {
    auto root = Convert(form_.epilogue);
    if (!root.ok()) return root.status();
    // The result is the last node: one that was shared with its own arguments cannot be, so this
    // only concerns leaves.
    if (*root + 1 != static_cast<int>(expression_.nodes.size()))
      return absl::InternalError("the epilogue's result is not its last node");
    return std::move(expression_);
  }

 private:
  absl::StatusOr<int> Convert(const Term& term) {
    const auto key = std::make_pair(term.node, term.vars);
    if (auto seen = nodes_.find(key); seen != nodes_.end()) return seen->second;
    const Node& node = graph_.nodes[term.node];
    Expression::Node made{
        .op = node.op, .type = node.type, .number = node.number, .integer = node.integer};
    if (term.node == form_.sum) {
      made.source = Expression::Source::kAccumulator;
    } else if (node.op == Op::kRead) {
      made.source = Expression::Source::kOperand;
      for (size_t x = 0; x < form_.operands.size(); ++x) {
        if (form_.operands[x].access == term) made.operand = static_cast<int>(x);
      }
      if (made.operand < 0)
        return absl::InternalError("the epilogue reads an operand that the form has not");
    } else if (node.op == Op::kLiteral) {
      made.source = Expression::Source::kLiteral;
    } else {
      if (!Supported(node.op))
        return absl::UnimplementedError(
            "no contraction: the epilogue has an operation beyond element-wise ones");
      if (IsInteger(node.type))
        return absl::UnimplementedError("no contraction: the epilogue computes with integers");
      for (const Term& arg : node.args) {
        Term inner{arg.node, {}};
        for (int v : arg.vars) inner.vars.push_back(term.vars[v]);
        auto id = Convert(inner);
        if (!id.ok()) return id;
        made.args.push_back(*id);
      }
    }
    expression_.nodes.push_back(std::move(made));
    const int id = static_cast<int>(expression_.nodes.size()) - 1;
    nodes_[key] = id;
    return id;
  }

  const Graph& graph_;
  const ContractionForm& form_;
  Expression expression_;
  std::map<std::pair<NodeId, std::vector<int>>, int> nodes_;
};

}  // namespace

absl::StatusOr<tile::Expression> MakeEpilogue(const Graph& graph, const ContractionForm& form) {
  if (form.trivial_epilogue) return Expression{};
  return Converter(graph, form).Run();
}

}  // namespace kiln::compiler
