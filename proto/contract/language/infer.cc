// SPDX-License-Identifier: Apache-2.0
#include "proto/contract/language/infer.h"

#include "absl/strings/str_cat.h"
#include "proto/contract/language/words.h"

namespace kiln::language {
namespace {

using Result = std::optional<Inferred>;  // nothing after an error

Inferred Typed(DType type) { return {type, std::nullopt, false}; }
Inferred Literal(const Constant& constant) {
  if (constant.is_bool) return {DType::kBool, constant, false};
  return {std::nullopt, constant, IsWhole(constant)};
}

bool IsUntyped(const Inferred& inferred) { return !inferred.type.has_value(); }
bool IsBool(const Inferred& inferred) { return inferred.type == DType::kBool; }
DType Numeric(DType type) { return type == DType::kBool ? DType::kI32 : type; }
DType Floating(DType type) { return IsFloat(type) ? type : DType::kF32; }

class Inferrer {
 public:
  explicit Inferrer(Scope* scope) : scope_(*scope) {}

  bool Statement(TensorSymbol* target) {
    Expr* value = target->definition->value;
    Result result = Infer(value);
    if (!result) return false;
    if (target->type) return Fits(value->offset, *result, *target->type, "the declared type");
    return true;
  }

  Result Infer(Expr* expr) {
    Result result = InferKind(expr);
    if (result) expr->inferred = *result;
    return result;
  }

 private:
  Result Fail(size_t offset, std::string what, std::string hint) {
    scope_.errors.Add(offset, std::move(what), std::move(hint));
    return std::nullopt;
  }

  Result InferKind(Expr* expr) {
    switch (expr->kind) {
      case ExprKind::kNumber:
        return Literal(expr->number);
      case ExprKind::kRead:
        return Read(expr);
      case ExprKind::kUnary:
        return Unary(expr);
      case ExprKind::kChain:
        return Chain(expr);
      case ExprKind::kCompare:
        return Compare(expr);
      case ExprKind::kPow:
        return Power(expr);
      case ExprKind::kSelect:
        return Select(expr);
      case ExprKind::kCall:
        return expr->args.size() == 1 ? Function(expr) : Extremum(expr);
      case ExprKind::kCast:
        return Cast(expr);
      case ExprKind::kReduce:
        return Reduce(expr);
      case ExprKind::kSoftmax:
        break;
    }
    Result body = Infer(expr->args[0]);
    if (!body) return body;
    return Typed(IsUntyped(*body) ? DType::kF32 : Floating(*body->type));
  }

  // Whether a literal can take the type; typed values always convert.
  bool Fits(size_t offset, const Inferred& value, DType type, absl::string_view whose) {
    if (!IsUntyped(value) || IsFloat(type)) return true;
    std::string what = "this literal";
    if (!value.whole) {
      Fail(offset, absl::StrCat(what, " is no integer and cannot take ", whose, ", ", Print(type)),
           "write cast(x, f32) of the other operand, or cast(value, i32) of the literal");
      return false;
    }
    if (!value.constant) return true;
    std::optional<int64_t> integer = AsInteger(*value.constant, 64);
    Interval range = RangeOfType(type);
    bool wide = type == DType::kI64;
    if (integer && (wide || (*integer >= range.lo && *integer <= range.hi))) return true;
    Fail(offset, absl::StrCat(what, " does not fit ", whose, ", ", Print(type)),
         wide ? "i64 ends at 2^63-1"
              : absl::StrCat(Print(type), " holds ", range.lo, "..", range.hi,
                             "; write cast(x, i64) of the other operand"));
    return false;
  }

  // The type of an operation over both, bool as i32. Nothing after an error; an untyped result is
  // Inferred{}.
  Result Join(Expr* a, const Inferred& left, Expr* b, const Inferred& right) {
    std::optional<DType> type = JoinTypes(left.type, right.type);
    if (!type) return Inferred{};
    if (!Fits(a->offset, left, *type, "the other operand's type") ||
        !Fits(b->offset, right, *type, "the other operand's type")) {
      return std::nullopt;
    }
    return Typed(*type);
  }

  Result Read(Expr* expr) {
    if (expr->reference == Reference::kVar) return Typed(DType::kI64);
    if (expr->reference == Reference::kDim) {
      const Dim& dim = scope_.dims[expr->index];
      if (dim.dynamic >= 0) return Inferred{std::nullopt, std::nullopt, true};
      return Literal({static_cast<double>(dim.range.lo), dim.range.lo, false});
    }
    const TensorSymbol& tensor = scope_.tensors[expr->index];
    bool good = !tensor.poisoned;
    for (Expr* subscript : expr->args) good = Int(subscript) && good;
    if (!good) return std::nullopt;
    Inferred type;
    if (tensor.type) {
      type = Typed(ComputeType(*tensor.type));
    } else {
      type = tensor.definition->value->inferred;
      if (tensor.stays && IsUntyped(type)) type = Typed(DefaultType(type));
    }
    if (expr->otherwise == nullptr) return type;
    Result otherwise = Infer(expr->otherwise);
    if (!otherwise) return otherwise;
    if (expr->always_inside) return type;
    if (IsUntyped(type)) type = Typed(DefaultType(type));
    size_t offset = expr->otherwise->offset;
    if (IsUntyped(*otherwise)) {
      return Fits(offset, *otherwise, *type.type, "the type of what is read") ? Result(type)
                                                                              : std::nullopt;
    }
    if (*otherwise->type == *type.type || JoinTypes(type.type, otherwise->type) == type.type)
      return type;
    return Fail(offset,
                absl::StrCat("`else` gives ", Print(*otherwise->type), " where ", Print(*type.type),
                             " is read"),
                absl::StrCat("write else cast(..., ", Print(*type.type), ")"));
  }

  // Subscripts and bounds: every tensor that they read holds integers.
  bool Int(Expr* expr) {
    if (expr->kind == ExprKind::kRead) {
      Result result = Infer(expr);
      if (!result) return false;
      bool integer = IsUntyped(*result) ? result->whole : IsInteger(*result->type);
      if (integer) return true;
      Fail(expr->offset,
           absl::StrCat(Quote(expr->text), " holds ",
                        IsUntyped(*result) ? "no integers" : Print(*result->type),
                        ", subscripts and bounds are integers"),
           "declare it with an integer type, or compute a temporary t[i] : i32 = cast(..., i32) "
           "and read that");
      return false;
    }
    bool good = true;
    for (Expr* arg : expr->args) good = Int(arg) && good;
    return good;
  }

  bool NeedBool(const Expr& expr, const Inferred& inferred, absl::string_view what) {
    if (IsBool(inferred)) return true;
    Fail(expr.offset,
         absl::StrCat(what, " must be bool, this is ",
                      IsUntyped(inferred) ? "a number" : Print(*inferred.type)),
         "compare it: x != 0");
    return false;
  }

  Result Unary(Expr* expr) {
    Result a = Infer(expr->args[0]);
    if (!a) return a;
    if (expr->op == Op::kNot) {
      if (!NeedBool(*expr->args[0], *a, "what `!` negates")) return std::nullopt;
      if (a->constant) return Literal(*FoldUnary(Op::kNot, *a->constant));
      return Typed(DType::kBool);
    }
    if (!IsUntyped(*a)) return Typed(Numeric(*a->type));
    if (a->constant) return Literal(*FoldUnary(Op::kNeg, *a->constant));
    return a;
  }

  Result Chain(Expr* expr) {
    Result left = Infer(expr->args[0]);
    std::vector<Inferred> prefix;
    bool logical = expr->ops[0] == Op::kAnd || expr->ops[0] == Op::kOr;
    if (left && logical && !NeedBool(*expr->args[0], *left, "an operand of && and ||"))
      left = std::nullopt;
    if (left) prefix.push_back(*left);
    for (size_t i = 0; i < expr->ops.size(); ++i) {
      Expr* arg = expr->args[i + 1];
      Result right = Infer(arg);  // of all operands, for all their errors
      if (right && logical && !NeedBool(*arg, *right, "an operand of && and ||"))
        right = std::nullopt;
      if (!left || !right) {
        left = std::nullopt;
        continue;
      }
      left = logical ? Logical(expr->ops[i], *left, *right)
                     : Arithmetic(expr->ops[i], expr->args[0], *left, arg, *right);
      if (left) prefix.push_back(*left);
    }
    expr->prefix = std::move(prefix);
    return left;
  }

  static Result Logical(Op op, const Inferred& a, const Inferred& b) {
    if (a.constant && b.constant) return Literal(*FoldBinary(op, *a.constant, *b.constant));
    return Typed(DType::kBool);
  }

  Result Arithmetic(Op op, Expr* a, const Inferred& left, Expr* b, const Inferred& right) {
    Result joined = Join(a, left, b, right);
    if (!joined || !IsUntyped(*joined)) return joined;
    if (left.constant && right.constant) {
      if (std::optional<Constant> folded = FoldBinary(op, *left.constant, *right.constant))
        return Literal(*folded);
    }
    bool closed =
        op == Op::kAdd || op == Op::kSub || op == Op::kMul || op == Op::kMin || op == Op::kMax;
    return Inferred{std::nullopt, std::nullopt, closed && left.whole && right.whole};
  }

  Result Compare(Expr* expr) {
    Result a = Infer(expr->args[0]), b = Infer(expr->args[1]);
    if (!a || !b) return std::nullopt;
    if (a->constant && b->constant && IsUntyped(*a) && IsUntyped(*b)) {
      return Literal(*FoldBinary(expr->op, *a->constant, *b->constant));
    }
    Result joined = Join(expr->args[0], *a, expr->args[1], *b);
    return joined ? Result(Typed(DType::kBool)) : joined;
  }

  Result Power(Expr* expr) {
    Result a = Infer(expr->args[0]), b = Infer(expr->args[1]);
    if (!a || !b) return std::nullopt;
    std::optional<int64_t> exponent;
    if (b->constant && IsUntyped(*b)) exponent = AsInteger(*b->constant, 64);
    if (exponent && *exponent >= 0 && *exponent <= 4 && !IsUntyped(*a))
      return Typed(Numeric(*a->type));
    const auto integers_have_none = [&] {
      return Fail(expr->offset, "integers have powers with literal exponents 0 to 4 only",
                  "write cast(x, f32) ^ n, or the product");
    };
    if (!IsUntyped(*a) && !IsFloat(*a->type) && IsUntyped(*b)) return integers_have_none();
    Result joined =
        Join(expr->args[0], *a, expr->args[1], IsUntyped(*b) && exponent ? Inferred{} : *b);
    if (!joined) return joined;
    if (!IsUntyped(*joined)) return IsFloat(*joined->type) ? joined : Result(integers_have_none());
    if (a->constant && b->constant) {
      if (std::optional<Constant> folded = FoldBinary(Op::kPow, *a->constant, *b->constant))
        return Literal(*folded);
    }
    return Inferred{std::nullopt, std::nullopt, false};
  }

  Result Select(Expr* expr) {
    Result c = Infer(expr->args[0]), a = Infer(expr->args[1]), b = Infer(expr->args[2]);
    if (!c || !a || !b || !NeedBool(*expr->args[0], *c, "the condition")) return std::nullopt;
    auto bool_or_literal = [](const Inferred& x) {
      return IsBool(x) ||
             (IsUntyped(x) && x.constant && (x.constant->value == 0 || x.constant->value == 1));
    };
    if ((IsBool(*a) || IsBool(*b)) && bool_or_literal(*a) && bool_or_literal(*b))
      return Typed(DType::kBool);
    Result joined = Join(expr->args[1], *a, expr->args[2], *b);
    if (!joined || !IsUntyped(*joined)) return joined;
    if (c->constant) return c->constant->value != 0 ? a : b;
    return Inferred{std::nullopt, std::nullopt, a->whole && b->whole};
  }

  Result Function(Expr* expr) {
    Result a = Infer(expr->args[0]);
    if (!a) return a;
    bool rounds = expr->op == Op::kFloor || expr->op == Op::kCeil || expr->op == Op::kRound;
    bool keeps = rounds || expr->op == Op::kAbs || expr->op == Op::kRelu;
    if (!IsUntyped(*a)) return Typed(keeps ? Numeric(*a->type) : Floating(*a->type));
    if (a->constant) {
      if (std::optional<Constant> folded = FoldUnary(expr->op, *a->constant))
        return Literal(*folded);
    }
    return Inferred{std::nullopt, std::nullopt, rounds || (keeps && a->whole)};
  }

  Result Extremum(Expr* expr) {
    Result a = Infer(expr->args[0]), b = Infer(expr->args[1]);
    if (!a || !b) return std::nullopt;
    return Arithmetic(expr->op, expr->args[0], *a, expr->args[1], *b);
  }

  Result Cast(Expr* expr) {
    Result a = Infer(expr->args[0]);
    return a ? Result(Typed(ComputeType(expr->storage))) : a;
  }

  Result Reduce(Expr* expr) {
    bool good = true;
    for (RangeSyntax& range : expr->ranges) {
      good = Int(range.lo) && good;  // of both ends, for all their errors
      good = Int(range.hi) && good;
    }
    Result body = Infer(expr->args[0]);
    if (!good || !body) return std::nullopt;
    DType type = IsUntyped(*body) ? DefaultType(*body) : *body->type;
    switch (expr->reduce) {
      case ReduceOp::kAny:
      case ReduceOp::kAll:
        if (!NeedBool(*expr->args[0], *body,
                      absl::StrCat("what ", ReductionName(expr->reduce), " runs over"))) {
          return std::nullopt;
        }
        return Typed(DType::kBool);
      case ReduceOp::kArgmax:
      case ReduceOp::kArgmin: {
        const auto& [lo, hi] = scope_.affine->RangeOf(expr->vars[0]);
        bool narrow =
            scope_.affine->Min(lo) >= INT32_MIN && scope_.affine->Max(hi) <= int64_t{INT32_MAX} + 1;
        return Typed(narrow ? DType::kI32 : DType::kI64);
      }
      case ReduceOp::kAvg:
        return Typed(Floating(type));
      default:
        return Typed(Numeric(type));
    }
  }

  Scope& scope_;
};

}  // namespace

DType DefaultType(const Inferred& inferred) {
  if (inferred.type) return *inferred.type;
  if (!inferred.whole) return DType::kF32;
  if (!inferred.constant) return DType::kI64;
  if (AsInteger(*inferred.constant, 32)) return DType::kI32;
  return AsInteger(*inferred.constant, 64) ? DType::kI64 : DType::kF32;
}

std::optional<DType> JoinTypes(std::optional<DType> a, std::optional<DType> b) {
  if (!a && !b) return std::nullopt;
  if (!a) std::swap(a, b);
  DType x = Numeric(*a), y = b ? Numeric(*b) : x;
  for (DType type : {DType::kF64, DType::kF32, DType::kI64}) {
    if (x == type || y == type) return type;
  }
  return DType::kI32;
}

void InferProgram(Scope* scope) {
  Inferrer inferrer(scope);
  for (Statement& statement : scope->program.statements) {
    if (statement.target.name.empty()) continue;
    TensorSymbol* target = scope->FindTensor(statement.target.name);
    if (target == nullptr || target->definition != &statement || target->poisoned) continue;
    if (!inferrer.Statement(target)) target->poisoned = true;
  }
}

}  // namespace kiln::language
