// SPDX-License-Identifier: Apache-2.0
#include "proto/contract/language/check_int.h"

#include "absl/strings/str_cat.h"
#include "proto/contract/language/limits.h"
#include "proto/contract/language/printer.h"

namespace kiln::language {
namespace {

class IntChecker {
 public:
  IntChecker(Scope* scope, IntPlace place) : scope_(*scope), place_(place) {}

  bool Check(Expr* expr) {
    switch (expr->kind) {
      case ExprKind::kNumber:
        if (expr->number.exact) return true;
        return Fail(expr->offset, absl::StrCat(Quote(expr->text), " is no integer"),
                    absl::StrCat(Where(), " hold integers; beyond 2^63 nothing fits"));
      case ExprKind::kRead:
        return CheckName(expr);
      case ExprKind::kUnary:
        if (expr->op == Op::kNeg) return Check(expr->args[0]);
        return Fail(expr->offset, absl::StrCat("`!` is of bools, ", Where(), " hold integers"), "");
      case ExprKind::kChain:
        return CheckChain(expr);
      default:
        return Fail(expr->offset, absl::StrCat("only + - * / % may stand in ", Where()),
                    place_ == IntPlace::kExtent
                        ? "extents are made of integers and dims"
                        : "compute it in a temporary of an integer type and read that: x[idx[i]]");
    }
  }

 private:
  bool Fail(size_t offset, std::string what, std::string hint) {
    scope_.errors.Add(offset, std::move(what), std::move(hint));
    return false;
  }

  absl::string_view Where() const {
    return place_ == IntPlace::kExtent ? "extents" : "subscripts and bounds";
  }

  bool CheckName(Expr* expr) {
    if (place_ == IntPlace::kSubscript) return expr->reference != Reference::kNone;
    if (const Dim* dim = scope_.FindDim(expr->text); dim != nullptr && !expr->bracketed) {
      expr->reference = Reference::kDim;
      expr->index = static_cast<int>(dim - scope_.dims.data());
      return true;
    }
    if (expr->bracketed || scope_.assigned_names.count(expr->text) > 0 ||
        scope_.FindTensor(expr->text) != nullptr) {
      return Fail(expr->offset,
                  absl::StrCat("the extent depends on the tensor ", Quote(expr->text)),
                  "shapes do not depend on data: pad to the largest size and pass the lengths as "
                  "an input");
    }
    return Fail(expr->offset, absl::StrCat(Quote(expr->text), " is no dim"),
                absl::StrCat("name it in the head: operator ", scope_.program.name.name, "(..., ",
                             expr->text, ")"));
  }

  bool CheckChain(Expr* expr) {
    if (expr->ops[0] == Op::kAnd || expr->ops[0] == Op::kOr) {
      return Fail(expr->offset, absl::StrCat("only + - * / % may stand in ", Where()), "");
    }
    bool good = true;
    for (Expr* arg : expr->args) good = Check(arg) && good;
    if (!good) return false;
    bool closed = IsClosed(*expr->args[0]);
    for (size_t i = 0; i < expr->ops.size(); ++i) {
      Expr* arg = expr->args[i + 1];
      bool arg_closed = IsClosed(*arg);
      if (expr->ops[i] == Op::kMul) {
        if (!closed && !arg_closed) {
          return Fail(arg->offset, "two factors depend on variables or tensors",
                      "all factors but one hold only integers and dims; compute the product in a "
                      "temporary of an integer type and read that");
        }
      } else if (expr->ops[i] == Op::kDiv || expr->ops[i] == Op::kMod) {
        if (!arg_closed) {
          return Fail(arg->offset, "a divisor depends on variables or tensors",
                      "divisors hold only integers and dims; divide in a temporary of an integer "
                      "type and read that");
        }
        if (scope_.affine->Min(scope_.PolynomialOf(*arg)) < 1) {
          return Fail(arg->offset,
                      absl::StrCat("the divisor ", scope_.Describe(*arg), " is not positive"),
                      "divisors are at least 1 under every binding of the dims");
        }
      }
      closed = closed && arg_closed;
    }
    return true;
  }

  Scope& scope_;
  IntPlace place_;
};

}  // namespace

bool CheckInt(Scope* scope, Expr* expr, IntPlace place) {
  return IntChecker(scope, place).Check(expr);
}

bool IsClosed(const Expr& expr) {
  if (expr.kind == ExprKind::kRead) return expr.reference == Reference::kDim;
  for (const Expr* arg : expr.args) {
    if (!IsClosed(*arg)) return false;
  }
  return true;
}

bool CheckExtent(Scope* scope, Expr* expr, absl::string_view of_what) {
  if (!CheckInt(scope, expr, IntPlace::kExtent)) return false;
  Polynomial value = scope->PolynomialOf(*expr);
  int64_t lo = scope->affine->Min(value), hi = scope->affine->Max(value);
  if (lo >= 0 && hi <= kMaxExtent) return true;
  std::string shown = lo == hi ? absl::StrCat(lo) : absl::StrCat(lo, "..", hi);
  if (lo <= -kUnknown || hi >= kUnknown) shown = "beyond 2^62";
  scope->errors.Add(
      expr->offset, absl::StrCat("an extent of ", of_what, " is ", ShowExpr(*expr), " = ", shown),
      lo < 0 ? "extents are at least 0 under every binding of the dims" : "extents are below 2^40");
  return false;
}

}  // namespace kiln::language
