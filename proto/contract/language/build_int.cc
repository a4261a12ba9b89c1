// SPDX-License-Identifier: Apache-2.0
#include "proto/contract/language/build_int.h"

namespace kiln::language {
namespace {

// Folding wraps where the value overflows; CheckInt and CheckExtent refuse what would matter.
int64_t Fold(Op op, int64_t a, int64_t b) {
  uint64_t x = static_cast<uint64_t>(a), y = static_cast<uint64_t>(b);
  switch (op) {
    case Op::kAdd:
      return static_cast<int64_t>(x + y);
    case Op::kSub:
      return static_cast<int64_t>(x - y);
    case Op::kMul:
      return static_cast<int64_t>(x * y);
    case Op::kFloorDiv:
      return a / b - (a % b < 0 ? 1 : 0);
    default:
      return a % b + (a % b < 0 ? b : 0);
  }
}

Op InInts(Op op) { return op == Op::kDiv ? Op::kFloorDiv : op == Op::kMod ? Op::kFloorMod : op; }

}  // namespace

Applied IntBuilder::Operation(Op op, const Applied& a, const Applied& b) {
  const Node &x = pool_.at(a.node), &y = pool_.at(b.node);
  bool divides = op == Op::kFloorDiv || op == Op::kFloorMod;
  if (x.op == Op::kLiteral && y.op == Op::kLiteral && (!divides || y.integer > 0)) {
    return pool_.Integer(DType::kI64, Fold(op, x.integer, y.integer));
  }
  Node node;
  node.op = op;
  node.type = DType::kI64;
  return pool_.Make(std::move(node), {a, b});
}

Applied IntBuilder::Build(const Expr& expr) {
  switch (expr.kind) {
    case ExprKind::kNumber:
      return pool_.Integer(DType::kI64, expr.number.exact.value_or(0));
    case ExprKind::kRead: {
      if (expr.reference == Reference::kVar) return pool_.Var(expr.index);
      if (expr.reference == Reference::kTensor) return read_(expr);
      const Dim& dim = scope_.dims[expr.index];
      return dim.dynamic < 0 ? pool_.Integer(DType::kI64, dim.range.lo) : pool_.Dim(dim.dynamic);
    }
    case ExprKind::kUnary: {
      Applied value = Build(*expr.args[0]);
      const Node& node = pool_.at(value.node);
      if (node.op == Op::kLiteral)
        return pool_.Integer(DType::kI64, Fold(Op::kSub, 0, node.integer));
      Node negation;
      negation.op = Op::kNeg;
      negation.type = DType::kI64;
      return pool_.Make(std::move(negation), {value});
    }
    default: {
      Applied left = Build(*expr.args[0]);
      for (size_t i = 0; i < expr.ops.size(); ++i) {
        left = Operation(InInts(expr.ops[i]), left, Build(*expr.args[i + 1]));
      }
      return left;
    }
  }
}

}  // namespace kiln::language
