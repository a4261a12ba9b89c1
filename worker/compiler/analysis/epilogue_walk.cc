// SPDX-License-Identifier: Apache-2.0
#include "worker/compiler/analysis/epilogue_walk.h"

#include <set>
#include <utility>

#include "absl/strings/str_cat.h"

namespace kiln::compiler {
namespace {

// Nodes are shared, so that a small graph can be a huge tree, and be applied in many orders of the
// axes.
constexpr size_t kMostApplications = 20000;

class Walker {
 public:
  Walker(const Graph& graph, DType type) : graph_(graph), type_(type) {}

  absl::Status Visit(const Term& term);

  EpilogueWalk result;
  bool found = false;

 private:
  absl::Status VisitReduction(const Term& term);

  const Graph& graph_;
  const DType type_;
  std::set<std::pair<NodeId, std::vector<int>>> seen_;
};

absl::Status Walker::VisitReduction(const Term& term) {
  if (found && !(result.sum == term)) {
    return absl::UnimplementedError("the output needs more than one reduction");
  }
  found = true;
  result.sum = term;
  return absl::OkStatus();
}

absl::Status Walker::Visit(const Term& term) {
  if (!seen_.insert({term.node, term.vars}).second) return absl::OkStatus();
  if (seen_.size() > kMostApplications) {
    return absl::UnimplementedError("the epilogue is too large");
  }
  const Node& node = graph_.nodes[term.node];
  switch (node.op) {
    case Op::kReduce:
      return VisitReduction(term);
    case Op::kSoftmax:
      return absl::UnimplementedError("the output needs a softmax");
    case Op::kVar:
    case Op::kDim:
      return absl::UnimplementedError("the epilogue uses an index as a number");
    case Op::kRead:
      result.reads.push_back(term);
      return absl::OkStatus();
    case Op::kCast:
      if (node.storage != type_) {
        return absl::UnimplementedError(
            absl::StrCat("the epilogue casts to ", Print(node.storage)));
      }
      break;
    default:
      break;
  }
  if (node.type != type_ && node.type != DType::kBool) {
    return absl::UnimplementedError(
        absl::StrCat("the epilogue computes in ", Print(node.type), " beside ", Print(type_)));
  }
  for (const Term& argument : node.args) {
    absl::Status status = Visit(Term{argument.node, Compose(argument.vars, term.vars)});
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

}  // namespace

std::vector<int> Compose(const std::vector<int>& inner, const std::vector<int>& outer) {
  std::vector<int> result;
  result.reserve(inner.size());
  for (int variable : inner) result.push_back(outer[variable]);
  return result;
}

absl::StatusOr<EpilogueWalk> WalkEpilogue(const Graph& graph, const Term& definition, DType type) {
  Walker walker(graph, type);
  if (absl::Status status = walker.Visit(definition); !status.ok()) return status;
  if (!walker.found) return absl::UnimplementedError("the output needs no reduction");
  return std::move(walker.result);
}

}  // namespace kiln::compiler
