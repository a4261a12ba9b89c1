// SPDX-License-Identifier: Apache-2.0
#include "proto/contract/language/match_output.h"

#include <algorithm>
#include <set>

#include "absl/strings/str_cat.h"
#include "proto/contract/language/printer.h"

namespace kiln::language {
namespace {

struct Candidate {
  NamePosition name;
  int dim = -1;  // of its first lone use
};

// The names of one statement that no `in` and no reduction's `over` binds, with the dim that each
// ranges over.
class NameCollector {
 public:
  explicit NameCollector(Scope* scope) : scope_(*scope) {}

  std::vector<Candidate> Run(const Expr& value) {
    Walk(value);
    std::vector<Candidate> free;
    for (const Candidate& candidate : found_) {
      if (bound_.count(candidate.name.name) == 0) free.push_back(candidate);
    }
    return free;
  }

 private:
  void Walk(const Expr& expr) {
    for (const RangeSyntax& range : expr.ranges) {
      bound_.insert(range.name.name);
      Walk(*range.lo);
      Walk(*range.hi);
    }
    if (expr.kind == ExprKind::kReduce) {
      for (const NamePosition& name : expr.over) bound_.insert(name.name);
    }
    const TensorSymbol* tensor =
        expr.kind == ExprKind::kRead && expr.bracketed ? scope_.FindTensor(expr.text) : nullptr;
    for (size_t i = 0; i < expr.args.size(); ++i) {
      const Expr& arg = *expr.args[i];
      bool lone = tensor != nullptr && i < tensor->axes.size() && arg.kind == ExprKind::kRead &&
                  !arg.bracketed;
      if (lone && scope_.FindDim(arg.text) == nullptr && scope_.FindTensor(arg.text) == nullptr &&
          seen_.insert(arg.text).second) {
        found_.push_back({{arg.text, arg.offset}, tensor->axes[i].dim});
      }
      Walk(arg);
    }
    if (expr.otherwise != nullptr) Walk(*expr.otherwise);
  }

  Scope& scope_;
  std::set<absl::string_view> bound_, seen_;
  std::vector<Candidate> found_;
};

}  // namespace

bool MatchOutputDims(Scope* scope, const Expr& value, const TensorSymbol& output, size_t offset,
                     std::vector<AxisSyntax>* axes) {
  std::vector<Candidate> candidates = NameCollector(scope).Run(value);
  std::string letters = "i,j,k,l,m,n,p,q";
  std::string hint =
      absl::StrCat("write ", output.name, "[",
                   letters.substr(0, std::max<size_t>(output.axes.size() * 2, 1) - 1), "] = ...");
  for (size_t i = 0; i < output.axes.size(); ++i) {
    const Axis& axis = output.axes[i];
    std::string dim = ShowExpr(*axis.extent);
    auto repeats = [&](const Axis& other) { return axis.dim >= 0 && other.dim == axis.dim; };
    if (axis.dim < 0 || std::count_if(output.axes.begin(), output.axes.end(), repeats) > 1) {
      scope->errors.Add(
          offset,
          absl::StrCat("the axes of ", Quote(output.name), " cannot be matched by name: ", dim,
                       axis.dim < 0 ? " is no plain dim" : " stands twice"),
          hint);
      return false;
    }
    std::vector<NamePosition> matching;
    for (const Candidate& candidate : candidates) {
      if (candidate.dim == axis.dim) matching.push_back(candidate.name);
    }
    if (matching.size() != 1) {
      std::string which =
          matching.empty() ? "no variable ranges over " : "two variables range over ";
      std::string names =
          matching.empty() ? "" : absl::StrCat(": ", matching[0].name, ", ", matching[1].name);
      scope->errors.Add(offset, absl::StrCat(which, dim, ", a dim of ", Quote(output.name), names),
                        hint);
      return false;
    }
    axes->push_back({matching[0], nullptr});
  }
  return true;
}

}  // namespace kiln::language
