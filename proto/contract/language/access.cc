// SPDX-License-Identifier: Apache-2.0
#include "proto/contract/language/access.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "proto/contract/language/printer.h"
#include "proto/contract/language/words.h"

namespace kiln::language {
namespace {

class AccessChecker {
 public:
  AccessChecker(Scope* scope, const TensorSymbol& target)
      : scope_(*scope), affine_(*scope->affine), in_scope_(target.axis_vars) {}

  void Walk(Expr* expr) {
    switch (expr->kind) {
      case ExprKind::kRead:
        return WalkRead(expr);
      case ExprKind::kReduce:
        return WalkReduction(expr);
      default:
        for (Expr* arg : expr->args) Walk(arg);
    }
  }

 private:
  void WalkReduction(Expr* expr) {
    for (RangeSyntax& range : expr->ranges) {
      Walk(range.lo);
      Walk(range.hi);
    }
    if (expr->reduce == ReduceOp::kAvg || expr->reduce == ReduceOp::kArgmax ||
        expr->reduce == ReduceOp::kArgmin) {
      CheckNotEmpty(*expr);
    }
    in_scope_.insert(in_scope_.end(), expr->vars.begin(), expr->vars.end());
    Walk(expr->args[0]);
    in_scope_.resize(in_scope_.size() - expr->vars.size());
  }

  Polynomial Length(VarId var) {
    const auto& [lo, hi] = affine_.RangeOf(var);
    return affine_.Add(hi, lo, -1);
  }

  // While it lives the dims are known to be such that no variable's range in scope is empty: an
  // access is made only then.
  class Reached {
   public:
    explicit Reached(AccessChecker* checker) : affine_(checker->affine_), saved_(affine_.dims()) {
      std::vector<Interval> dims = saved_;
      for (VarId var : checker->in_scope_) {
        Polynomial length = checker->Length(var);
        if (affine_.Max(length) < 1) never_ = true;
        // Where the length is a dim and a constant, D + c >= 1 says what D is at least.
        int64_t constant = 0;
        int dim = -1;
        bool simple = length.terms.size() <= 2;
        for (const auto& [monomial, coefficient] : length.terms) {
          if (monomial.empty()) {
            constant = coefficient;
          } else if (monomial.size() == 1 && monomial[0] < static_cast<int>(dims.size()) &&
                     coefficient == 1 && dim < 0) {
            dim = monomial[0];  // the atoms of dims come first
          } else {
            simple = false;
          }
        }
        if (simple && dim >= 0)
          dims[dim].lo = std::max(dims[dim].lo, std::min(1 - constant, dims[dim].hi));
      }
      if (dims.size() > 0) affine_.SetDims(std::move(dims));
    }
    ~Reached() {
      if (!saved_.empty()) affine_.SetDims(saved_);
    }
    bool never() const { return never_; }

   private:
    Affine& affine_;
    std::vector<Interval> saved_;
    bool never_ = false;
  };

  void WalkRead(Expr* expr) {
    for (Expr* subscript : expr->args) Walk(subscript);
    if (expr->reference != Reference::kTensor) return;
    const TensorSymbol& tensor = scope_.tensors[expr->index];
    expr->always_inside = true;
    if (!expr->args.empty()) {
      Reached reached(this);
      for (size_t axis = 0; axis < expr->args.size() && !reached.never(); ++axis) {
        if (!CheckSubscript(*expr, tensor, axis)) expr->always_inside = false;
      }
    }
    // What is never read need not be looked at: it is no part of the canonical form.
    if (expr->otherwise != nullptr && !expr->always_inside) Walk(expr->otherwise);
  }

  // Whether the subscript stays within the axis. Reports it if it need not, nothing is read
  // instead, and the text alone decides it; what tensors hold is the caller's promise.
  bool CheckSubscript(const Expr& read, const TensorSymbol& tensor, size_t axis) {
    Polynomial at = scope_.PolynomialOf(*read.args[axis]);
    const Polynomial& extent = scope_.ExtentOf(*tensor.axes[axis].extent);
    Polynomial room = affine_.Add(affine_.Add(extent, affine_.Number(-1)), at, -1);
    if (affine_.Min(at) >= 0 && affine_.Min(room) >= 0) return true;
    if (read.otherwise != nullptr || affine_.ReadsTensor(at)) return false;
    int64_t lo = affine_.Min(at), hi = affine_.Max(at);
    auto bound = [](int64_t end) {
      return std::abs(end) >= kUnknown ? std::string("unbounded") : absl::StrCat(end);
    };
    scope_.errors.Add(read.args[axis]->offset,
                      absl::StrCat("the read can fall outside ", Quote(tensor.name), ": subscript ",
                                   axis, ", ", ShowExpr(*read.args[axis]), ", runs from ",
                                   bound(lo), " to ", bound(hi), ", the axis has ",
                                   scope_.Describe(*tensor.axes[axis].extent), " elements from 0"),
                      absl::StrCat("say what is read there: ", ShowExpr(read),
                                   " else 0; or narrow the range of a variable"));
    return false;
  }

  void CheckNotEmpty(const Expr& reduction) {
    size_t outside = in_scope_.size();
    for (VarId var : reduction.vars) {
      {
        Reached reached(this);
        if (!reached.never() && affine_.Min(Length(var)) < 1) {
          scope_.errors.Add(
              reduction.offset,
              absl::StrCat(ReductionName(reduction.reduce), " over ", Quote(scope_.vars[var].name),
                           ", whose range may be empty: it has no value then"),
              "make the range at least 1 long under every binding, or write the case out: "
              "n > 0 ? sum(...) / n : 0");
          break;
        }
      }
      in_scope_.push_back(var);  // the ranges that follow may use it
    }
    in_scope_.resize(outside);
  }

  Scope& scope_;
  Affine& affine_;
  std::vector<VarId> in_scope_;
};

}  // namespace

void CheckAccesses(Scope* scope) {
  for (const TensorSymbol& tensor : scope->tensors) {
    if (tensor.definition == nullptr || tensor.poisoned) continue;
    AccessChecker(scope, tensor).Walk(tensor.definition->value);
  }
}

}  // namespace kiln::language
