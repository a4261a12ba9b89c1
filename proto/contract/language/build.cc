// SPDX-License-Identifier: Apache-2.0
#include "proto/contract/language/build.h"

#include <algorithm>
#include <cmath>

#include "proto/contract/language/build_int.h"
#include "proto/contract/language/infer.h"

namespace kiln::language {
namespace {

class Builder {
 public:
  explicit Builder(Scope* scope)
      : scope_(*scope),
        ints_(scope, &built_.pool, [this](const Expr& read) { return Value(read, DType::kI64); }) {}

  Built Run() {
    for (const TensorSymbol& tensor : scope_.tensors) {
      std::vector<Applied> shape;
      for (const Axis& axis : tensor.axes) {
        if (tensor.stays) shape.push_back(ExtentOf(*axis.extent));
      }
      built_.shapes.push_back(std::move(shape));
    }
    for (Statement& statement : scope_.program.statements) {
      if (statement.target.name.empty()) continue;
      const TensorSymbol* tensor = scope_.FindTensor(statement.target.name);
      if (!tensor->live || !tensor->stays) continue;
      int index = static_cast<int>(tensor - scope_.tensors.data());
      AddDefinition({index, OverAxes(Define(*tensor), *tensor)});
    }
    return std::move(built_);
  }

 private:
  static Term OverAxes(const Applied& value, const TensorSymbol& tensor) {
    Term term{value.node, {}};
    const std::vector<VarId>& axes = tensor.axis_vars;
    for (VarId var : value.vars) {
      term.vars.push_back(
          static_cast<int>(std::find(axes.begin(), axes.end(), var) - axes.begin()));
    }
    return term;
  }

  // Temporaries of one type, shape and definition are one: how often a value is named does not
  // matter.
  void AddDefinition(const Definition& definition) {
    const TensorSymbol& tensor = scope_.tensors[definition.tensor];
    for (const Definition& earlier : built_.definitions) {
      const TensorSymbol& other = scope_.tensors[earlier.tensor];
      bool same = tensor.kind == TensorKind::kTemporary && other.kind == TensorKind::kTemporary &&
                  tensor.type == other.type && earlier.value == definition.value &&
                  SameShape(built_.shapes[earlier.tensor], built_.shapes[definition.tensor]);
      if (!same) continue;
      merged_[definition.tensor] = earlier.tensor;
      return;
    }
    built_.definitions.push_back(definition);
  }

  static bool SameShape(const std::vector<Applied>& a, const std::vector<Applied>& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                      [](const Applied& x, const Applied& y) { return x.node == y.node; });
  }

  // The value that is stored: of the tensor's compute type, by a cast to the storage type where the
  // kind of number changes, so that it is rounded once.
  Applied Define(const TensorSymbol& tensor) {
    const Expr& value = *tensor.definition->value;
    if (!tensor.type) return Value(value, DefaultType(value.inferred));
    DType compute = ComputeType(*tensor.type);
    if (!value.inferred.type || *value.inferred.type == compute) return Value(value, compute);
    return MakeCast(Value(value, *value.inferred.type), *tensor.type);
  }

  Applied MakeCast(const Applied& value, DType storage) {
    Node node;
    node.op = Op::kCast;
    node.type = ComputeType(storage);
    node.storage = storage;
    return built_.pool.Make(std::move(node), {value});
  }

  // The expression as a value of the type: built in its own type and converted, or, if it has none,
  // in that type.
  Applied Value(const Expr& expr, DType type) {
    const Inferred& inferred = expr.inferred;
    if (inferred.constant) return OfConstant(*inferred.constant, type);
    if (inferred.type) {
      Applied value = Typed(expr, *inferred.type);
      return *inferred.type == type ? value : MakeCast(value, type);
    }
    return Untyped(expr, type);
  }

  Applied OfConstant(const Constant& constant, DType type) {
    if (IsFloat(type)) return built_.pool.Literal(type, constant.value);
    if (type == DType::kBool) return built_.pool.Integer(type, constant.value != 0);
    return built_.pool.Integer(type, AsInteger(constant, 64).value_or(0));
  }

  // Of literals and dynamic dims alone: operations are done in f64, choices keep the type that is
  // wanted.
  Applied Untyped(const Expr& expr, DType type) {
    if (expr.kind == ExprKind::kSelect) return Select(expr, type);
    if (expr.kind == ExprKind::kRead) {
      if (expr.reference == Reference::kTensor) return Inline(expr, type);
      Applied dim = built_.pool.Dim(scope_.dims[expr.index].dynamic);
      return type == DType::kI64 ? dim : MakeCast(dim, type);
    }
    Applied value = Typed(expr, DType::kF64);
    return type == DType::kF64 ? value : MakeCast(value, type);
  }

  Applied Operation(Op op, DType type, const std::vector<Applied>& args) {
    Node node;
    node.op = op;
    node.type = type;
    return built_.pool.Make(std::move(node), args);
  }

  Applied Typed(const Expr& expr, DType type) {
    switch (expr.kind) {
      case ExprKind::kRead:
        return Read(expr, type);
      case ExprKind::kUnary:
        return Operation(expr.op, type, {Value(*expr.args[0], type)});
      case ExprKind::kChain:
        return Chain(expr, type);
      case ExprKind::kCompare:
        return Compare(expr);
      case ExprKind::kPow:
        return Power(expr, type);
      case ExprKind::kSelect:
        return Select(expr, type);
      case ExprKind::kCall:
        return Call(expr, type);
      case ExprKind::kCast:
        return Cast(expr);
      case ExprKind::kReduce:
        return Reduce(expr, type);
      default:
        return Softmax(expr, type);
    }
  }

  Applied Read(const Expr& expr, DType type) {
    if (expr.reference == Reference::kVar) return built_.pool.Var(expr.index);
    const TensorSymbol& tensor = scope_.tensors[expr.index];
    if (!tensor.stays) return Inline(expr, type);
    Node node;
    node.op = Op::kRead;
    node.type = type;
    auto merged = merged_.find(expr.index);
    node.index = merged == merged_.end() ? expr.index : merged->second;
    std::vector<Applied> args;
    for (VarId var : expr.vars) args.push_back(built_.pool.Var(var));
    for (const Expr* subscript : expr.args) args.push_back(ints_.Build(*subscript));
    if (expr.otherwise != nullptr && !expr.always_inside) {
      node.has_else = true;
      args.push_back(Value(*expr.otherwise, type));
    }
    return built_.pool.Make(std::move(node), args);
  }

  // The temporary's expression, with the variables of this read in the place of its axes: they are
  // distinct, so that it is the same node.
  Applied Inline(const Expr& read, DType type) {
    const TensorSymbol& tensor = scope_.tensors[read.index];
    auto key = std::make_pair(read.index, type);
    auto found = inlined_.find(key);
    if (found == inlined_.end()) {
      found = inlined_.emplace(key, Value(*tensor.definition->value, type)).first;
    }
    Applied value = found->second;
    for (VarId& var : value.vars) {
      size_t axis = std::find(tensor.axis_vars.begin(), tensor.axis_vars.end(), var) -
                    tensor.axis_vars.begin();
      var = read.bracketed ? read.args[axis]->index : read.vars[axis];
    }
    return value;
  }

  Applied Chain(const Expr& expr, DType type) {
    if (expr.ops[0] == Op::kAnd || expr.ops[0] == Op::kOr) {
      Applied left = Value(*expr.args[0], DType::kBool);
      for (size_t i = 0; i < expr.ops.size(); ++i) {
        left = Operation(expr.ops[i], DType::kBool, {left, Value(*expr.args[i + 1], DType::kBool)});
      }
      return left;
    }
    // From the left, each step in the type of what it joins. `left` has the type `held`.
    const std::vector<Inferred>& prefix = expr.prefix;
    size_t start = 0;
    while (start + 1 < prefix.size() && prefix[start + 1].constant) ++start;
    DType held = StepType(prefix, start + 1, type);
    Applied left = prefix[start].constant ? OfConstant(*prefix[start].constant, held)
                                          : Value(*expr.args[0], held);
    for (size_t i = start; i < expr.ops.size(); ++i) {
      DType step = StepType(prefix, i + 1, type);
      if (step != held) left = MakeCast(left, step);
      held = step;
      left = Operation(expr.ops[i], step, {left, Value(*expr.args[i + 1], step)});
    }
    return left;
  }

  // The type that the first n+1 operands are joined in; those without one in f64.
  static DType StepType(const std::vector<Inferred>& prefix, size_t n, DType whole) {
    const Inferred& step = prefix[std::min(n, prefix.size() - 1)];
    if (n + 1 >= prefix.size()) return whole;
    return step.type.value_or(DType::kF64);
  }

  Applied Compare(const Expr& expr) {
    const Inferred &a = expr.args[0]->inferred, &b = expr.args[1]->inferred;
    DType type = JoinTypes(a.type, b.type).value_or(DType::kF64);
    return Operation(expr.op, DType::kBool,
                     {Value(*expr.args[0], type), Value(*expr.args[1], type)});
  }

  Applied Power(const Expr& expr, DType type) {
    const Inferred& exponent = expr.args[1]->inferred;
    std::optional<int64_t> n;
    if (exponent.constant && !exponent.type) n = AsInteger(*exponent.constant, 64);
    Applied base = Value(*expr.args[0], type);
    if (!n || *n < 0 || *n > 4)
      return Operation(Op::kPow, type, {base, Value(*expr.args[1], type)});
    if (*n == 0) return OfConstant({1, 1, false}, type);
    if (*n == 1) return base;
    Applied square = Operation(Op::kMul, type, {base, base});
    if (*n == 2) return square;
    return Operation(Op::kMul, type, {square, *n == 3 ? base : square});
  }

  Applied Select(const Expr& expr, DType type) {
    const Inferred& condition = expr.args[0]->inferred;
    if (condition.constant) return Value(*expr.args[condition.constant->value != 0 ? 1 : 2], type);
    return Operation(Op::kSelect, type,
                     {Value(*expr.args[0], DType::kBool), Value(*expr.args[1], type),
                      Value(*expr.args[2], type)});
  }

  Applied Call(const Expr& expr, DType type) {
    std::vector<Applied> args;
    for (const Expr* arg : expr.args) args.push_back(Value(*arg, type));
    bool rounds = expr.op == Op::kFloor || expr.op == Op::kCeil || expr.op == Op::kRound;
    if (rounds && !IsFloat(type)) return args[0];
    return Operation(expr.op, type, args);
  }

  Applied Cast(const Expr& expr) {
    const Expr& value = *expr.args[0];
    const Inferred& inferred = value.inferred;
    DType compute = ComputeType(expr.storage);
    bool same_width =
        expr.storage == DType::kF32 || expr.storage == DType::kF64 || expr.storage == DType::kBool;
    if (inferred.constant && same_width) return OfConstant(*inferred.constant, compute);
    bool integer = IsInteger(expr.storage) && inferred.constant && inferred.whole;
    if (integer && Bits(expr.storage) >= 32) {
      if (auto fits = AsInteger(*inferred.constant, Bits(expr.storage)))
        return built_.pool.Integer(compute, *fits);
    }
    DType from = inferred.type.value_or(inferred.whole ? DType::kI64 : DType::kF64);
    if (inferred.constant && inferred.whole && !AsInteger(*inferred.constant, 64))
      from = DType::kF64;
    if (!IsFloat(expr.storage) && from == compute && Bits(expr.storage) == Bits(compute))
      return Value(value, from);
    return MakeCast(Value(value, from), expr.storage);
  }

  AppliedRange RangeOf(VarId var) {
    const Var& info = scope_.vars[var];
    Applied lo = info.lo == nullptr ? built_.pool.Integer(DType::kI64, 0) : ints_.Build(*info.lo);
    return {var, lo, info.lo == nullptr ? ExtentOf(*info.hi) : ints_.Build(*info.hi)};
  }

  // Many axes and variables share one.
  Applied ExtentOf(const Expr& extent) {
    auto found = extents_.find(&extent);
    if (found == extents_.end()) found = extents_.emplace(&extent, ints_.Build(extent)).first;
    return found->second;
  }

  Applied Reduce(const Expr& expr, DType type) {
    Node node;
    node.op = Op::kReduce;
    node.type = type;
    node.reduce = expr.reduce;
    const Inferred& body = expr.args[0]->inferred;
    DType body_type = type;
    if (expr.reduce == ReduceOp::kArgmax || expr.reduce == ReduceOp::kArgmin) {
      body_type = body.type ? JoinTypes(body.type, body.type).value() : DefaultType(body);
    }
    bool adds = expr.reduce == ReduceOp::kSum || expr.reduce == ReduceOp::kProd ||
                expr.reduce == ReduceOp::kAvg;
    node.accumulator = adds ? AccumulatorOf(type) : body_type;
    std::vector<AppliedRange> ranges;
    for (VarId var : expr.vars) ranges.push_back(RangeOf(var));
    return built_.pool.Bind(std::move(node), Value(*expr.args[0], body_type), std::move(ranges));
  }

  Applied Softmax(const Expr& expr, DType type) {
    Node node;
    node.op = Op::kSoftmax;
    node.type = type;
    std::vector<AppliedRange> ranges;
    for (VarId var : expr.vars) ranges.push_back(RangeOf(var));
    return built_.pool.Bind(std::move(node), Value(*expr.args[0], type), std::move(ranges));
  }

  Scope& scope_;
  Built built_;
  IntBuilder ints_;
  std::map<int, int> merged_;  // temporary -> the equal one before it
  std::map<std::pair<int, DType>, Applied> inlined_;
  std::map<const Expr*, Applied> extents_;
};

}  // namespace

Built BuildNodes(Scope* scope) { return Builder(scope).Run(); }

}  // namespace kiln::language
