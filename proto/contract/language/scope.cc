// SPDX-License-Identifier: Apache-2.0
#include "proto/contract/language/scope.h"

#include "absl/strings/str_cat.h"
#include "proto/contract/language/printer.h"

namespace kiln::language {

const Dim* Scope::FindDim(absl::string_view name) const {
  auto it = dim_names.find(name);
  return it == dim_names.end() ? nullptr : &dims[it->second];
}

TensorSymbol* Scope::FindTensor(absl::string_view name) {
  auto it = tensor_names.find(name);
  return it == tensor_names.end() ? nullptr : &tensors[it->second];
}

Polynomial Scope::PolynomialOf(const Expr& expr) {
  switch (expr.kind) {
    case ExprKind::kNumber:
      return expr.number.exact ? affine->Number(*expr.number.exact)
                               : affine->Opaque(kAnything, false);
    case ExprKind::kRead: {
      if (expr.reference == Reference::kDim) {
        const Dim& dim = dims[expr.index];
        return dim.dynamic < 0 ? affine->Number(dim.range.lo) : affine->Dim(dim.dynamic);
      }
      if (expr.reference == Reference::kVar) return affine->Var(expr.index);
      if (expr.reference != Reference::kTensor) return affine->Opaque(kAnything, true);
      const TensorSymbol& tensor = tensors[expr.index];
      Interval range = tensor.type ? RangeOfType(*tensor.type) : kAnything;
      if (expr.otherwise != nullptr) range = kAnything;
      return affine->Opaque(range, true);
    }
    case ExprKind::kUnary:
      return affine->Add(affine->Number(0), PolynomialOf(*expr.args[0]), -1);
    case ExprKind::kChain: {
      Polynomial left = PolynomialOf(*expr.args[0]);
      for (size_t i = 0; i < expr.ops.size(); ++i) {
        Polynomial right = PolynomialOf(*expr.args[i + 1]);
        switch (expr.ops[i]) {
          case Op::kAdd:
            left = affine->Add(left, right);
            break;
          case Op::kSub:
            left = affine->Add(left, right, -1);
            break;
          case Op::kMul:
            left = affine->Mul(left, right);
            break;
          case Op::kDiv:
            left = affine->Div(left, right);
            break;
          default:
            left = affine->Mod(left, right);
        }
      }
      return left;
    }
    default:
      return affine->Opaque(kAnything, false);
  }
}

void Scope::SetRange(VarId var, Expr* lo, Expr* hi) {
  vars[var].lo = lo;
  vars[var].hi = hi;
  vars[var].ranged = true;
  // An axis or a variable without a range in the text begins at 0 and ends at an extent, which
  // others share.
  if (lo == nullptr) {
    affine->SetRange(var, affine->Number(0), ExtentOf(*hi));
  } else {
    affine->SetRange(var, PolynomialOf(*lo), PolynomialOf(*hi));
  }
}

Expr* Scope::DimExpr(int dim) {
  Expr*& expr = dim_exprs_[dim];
  if (expr == nullptr) {
    expr = program.New(ExprKind::kRead, dims[dim].offset);
    expr->text = program.dims[dim].name;
    expr->reference = Reference::kDim;
    expr->index = dim;
  }
  return expr;
}

bool Scope::SameExtent(const Expr& a, const Expr& b) {
  return &a == &b || ExtentOf(a) == ExtentOf(b);
}

const Polynomial& Scope::ExtentOf(const Expr& extent) {
  auto found = extents_.find(&extent);
  if (found == extents_.end()) found = extents_.emplace(&extent, PolynomialOf(extent)).first;
  return found->second;
}

std::string Scope::Describe(const Expr& extent) {
  std::string text = ShowExpr(extent);
  Polynomial value = PolynomialOf(extent);
  int64_t lo = affine->Min(value), hi = affine->Max(value);
  std::string number = lo == hi ? absl::StrCat(lo) : absl::StrCat(lo, "..", hi);
  return text == number ? number : absl::StrCat(text, " (", number, ")");
}

}  // namespace kiln::language
