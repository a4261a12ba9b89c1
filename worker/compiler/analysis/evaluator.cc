// SPDX-License-Identifier: Apache-2.0
#include "worker/compiler/analysis/evaluator.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"

namespace kiln::compiler {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// The value of a reduction of nothing.
Scalar Identity(const Node& node) {
  const DType type = node.type;
  switch (node.reduce) {
    case ReduceOp::kProd:
      return {type, 1, 1};
    case ReduceOp::kMax:
      return {type, -kInfinity, IsFloat(type) ? 0 : LimitsOf(type).least};
    case ReduceOp::kMin:
      return {type, kInfinity, IsFloat(type) ? 0 : LimitsOf(type).greatest};
    case ReduceOp::kAll:
      return {type, 0, 1};
    default:  // sum, avg, any; the index reductions are never empty
      return {type, 0, 0};
  }
}

}  // namespace

size_t Evaluator::Hash::operator()(const Variables& key) const {
  uint64_t hash = 1469598103934665603u;
  for (int64_t value : key) {
    hash = (hash ^ static_cast<uint64_t>(value)) * 0x9E3779B97F4A7C15u;
    hash ^= hash >> 29;
  }
  return hash;
}

Evaluator::Evaluator(const Graph& graph, const std::vector<HostTensor>& tensors,
                     Arithmetic arithmetic)
    : graph_(graph), tensors_(tensors), arithmetic_(arithmetic) {
  std::vector<int> uses(graph.nodes.size(), 0);
  for (const Node& node : graph.nodes) {
    for (const Term& argument : node.args) ++uses[argument.node];
  }
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const Op op = graph.nodes[i].op;
    const bool cheap = op == Op::kLiteral || op == Op::kVar || op == Op::kRead;
    remembered_.push_back(op == Op::kReduce || op == Op::kSoftmax || (uses[i] > 1 && !cheap));
  }
  memory_.resize(graph.nodes.size());
  rows_.resize(graph.nodes.size());
}

double Evaluator::Round(DType type, double value) const {
  return arithmetic_ == Arithmetic::kAsSpecified ? RoundTo(type, value) : value;
}

Scalar Evaluator::Evaluate(const Term& term, const std::vector<int64_t>& variables) {
  Variables own;
  own.reserve(term.vars.size());
  for (int v : term.vars) own.push_back(variables[v]);
  return EvaluateNode(term.node, own);
}

Scalar Evaluator::EvaluateNode(NodeId id, const Variables& own) {
  if (!remembered_[id]) return Dispatch(id, own);
  auto found = memory_[id].find(own);
  if (found != memory_[id].end()) return found->second;
  const Scalar value = Dispatch(id, own);
  memory_[id].emplace(own, value);
  return value;
}

Scalar Evaluator::Dispatch(NodeId id, const Variables& own) {
  const Node& node = graph_.nodes[id];
  switch (node.op) {
    case Op::kLiteral:
      return IsFloat(node.type) ? FloatScalar(node.type, node.number, arithmetic_)
                                : IntegerScalar(node.type, node.integer);
    case Op::kVar:
      return IntegerScalar(DType::kI64, own[0]);
    case Op::kRead:
      return Read(node, own);
    case Op::kSelect:  // only the chosen side is evaluated
      return ConvertTo(node.type,
                       Evaluate(node.args[Evaluate(node.args[0], own).integer != 0 ? 1 : 2], own),
                       arithmetic_);
    case Op::kAnd:
      return {DType::kBool, 0,
              Evaluate(node.args[0], own).integer != 0 && Evaluate(node.args[1], own).integer != 0};
    case Op::kOr:
      return {DType::kBool, 0,
              Evaluate(node.args[0], own).integer != 0 || Evaluate(node.args[1], own).integer != 0};
    case Op::kReduce:
      if (node.reduce == ReduceOp::kArgmax || node.reduce == ReduceOp::kArgmin) {
        return ArgReduce(node, own);
      }
      return Reduce(node, own);
    case Op::kSoftmax:
      return Softmax(id, own);
    default: {
      std::vector<Scalar> arguments;
      for (const Term& argument : node.args) arguments.push_back(Evaluate(argument, own));
      return ApplyElementwise(node, arguments, arithmetic_);
    }
  }
}

Scalar Evaluator::Read(const Node& node, const Variables& own) {
  const HostTensor& tensor = tensors_[node.index];
  int64_t offset = 0;
  for (size_t axis = 0; axis < tensor.shape.size(); ++axis) {
    const int64_t subscript = Evaluate(node.args[axis], own).integer;
    if (subscript < 0 || subscript >= tensor.shape[axis]) {
      if (node.has_else) {
        return ConvertTo(node.type, Evaluate(node.args.back(), own), arithmetic_);
      }
      if (status_.ok()) {
        status_ = absl::OutOfRangeError(absl::StrCat(graph_.tensors[node.index].name,
                                                     ": subscript ", axis + 1, " is ", subscript,
                                                     "; allowed: 0 to ", tensor.shape[axis] - 1));
      }
      return Scalar{node.type, 0, 0};
    }
    offset += subscript * tensor.strides[axis];
  }
  if (IsFloat(tensor.type)) {
    return ConvertTo(node.type, {ComputeType(tensor.type), LoadAsDouble(tensor, offset), 0},
                     arithmetic_);
  }
  return ConvertTo(node.type, {ComputeType(tensor.type), 0, LoadAsInteger(tensor, offset)},
                   arithmetic_);
}

void Evaluator::ForEachPoint(const Node& node, const Variables& own,
                             const std::function<void(const Variables&)>& visit) {
  Variables point = own;
  std::function<void(size_t)> loop = [&](size_t depth) {
    if (depth == node.bound.size()) {
      visit(point);
      return;
    }
    const int64_t lo = Evaluate(node.bound[depth].lo, point).integer;
    const int64_t hi = Evaluate(node.bound[depth].hi, point).integer;
    point.push_back(lo);
    for (int64_t value = lo; value < hi && status_.ok(); ++value) {
      point.back() = value;
      loop(depth + 1);
    }
    point.pop_back();
  };
  loop(0);
}

Scalar Evaluator::Reduce(const Node& node, const Variables& own) {
  Scalar result = Identity(node);
  const bool is_float = IsFloat(node.accumulator) && IsFloat(node.type);
  double number = result.number;
  int64_t integer = result.integer;
  int64_t count = 0;
  ForEachPoint(node, own, [&](const Variables& point) {
    const Scalar term = Evaluate(node.args[0], point);
    ++count;
    if (node.reduce == ReduceOp::kAny || node.reduce == ReduceOp::kAll) {
      const bool value = term.integer != 0;
      integer = node.reduce == ReduceOp::kAny ? integer != 0 || value : integer != 0 && value;
      return;
    }
    if (!is_float) {
      const Op op = node.reduce == ReduceOp::kProd  ? Op::kMul
                    : node.reduce == ReduceOp::kMax ? Op::kMax
                    : node.reduce == ReduceOp::kMin ? Op::kMin
                                                    : Op::kAdd;
      const DType type = IsFloat(node.accumulator) ? node.type : ComputeType(node.accumulator);
      const Node step{.op = op, .type = type, .free_vars = 0};
      integer = ApplyElementwise(step, {{type, 0, integer}, term}, arithmetic_).integer;
      return;
    }
    const double x = ConvertTo(node.type, term, arithmetic_).number;
    switch (node.reduce) {
      case ReduceOp::kProd:
        number = Round(node.accumulator, number * x);
        break;
      case ReduceOp::kMax:
        number = Maximum(number, x);
        break;
      case ReduceOp::kMin:
        number = Minimum(number, x);
        break;
      default:
        number = Round(node.accumulator, number + x);
    }
  });
  if (node.reduce == ReduceOp::kAvg) {
    const double total = is_float ? number : static_cast<double>(integer);
    return FloatScalar(node.type, total / static_cast<double>(count), arithmetic_);
  }
  if (!is_float && IsFloat(node.type)) number = static_cast<double>(integer);
  if (IsFloat(node.type)) return FloatScalar(node.type, number, arithmetic_);
  return IntegerScalar(node.type, integer);
}

Scalar Evaluator::ArgReduce(const Node& node, const Variables& own) {
  const bool greatest = node.reduce == ReduceOp::kArgmax;
  bool first = true, nan = false;
  Scalar best;
  int64_t index = 0;
  ForEachPoint(node, own, [&](const Variables& point) {
    const Scalar term = Evaluate(node.args[0], point);
    if (nan) return;  // the first NaN stays
    bool better = first;
    if (!first && IsFloat(term.type)) {
      // -0 is below +0 as for max and min.
      const double limit =
          greatest ? Maximum(best.number, term.number) : Minimum(best.number, term.number);
      better = limit != best.number || std::signbit(limit) != std::signbit(best.number);
    } else if (!first) {
      better = greatest ? term.integer > best.integer : term.integer < best.integer;
    }
    nan = IsFloat(term.type) && std::isnan(term.number);
    if (better || nan) {
      best = term;
      index = point.back();
    }
    first = false;
  });
  return IntegerScalar(node.type, index);
}

Scalar Evaluator::Softmax(NodeId id, const Variables& own) {
  const Node& node = graph_.nodes[id];
  auto value = [&](const Variables& point) {
    return ConvertTo(node.type, Evaluate(node.args[0], point), arithmetic_).number;
  };
  // A row does not depend on where it is read: the key leaves out variables that only say that.
  Variables key = own;
  for (int variable : node.at) {
    bool used = std::count(node.args[0].vars.begin(), node.args[0].vars.end(), variable) != 0;
    for (const Range& range : node.bound) {
      used |= std::count(range.lo.vars.begin(), range.lo.vars.end(), variable) != 0;
      used |= std::count(range.hi.vars.begin(), range.hi.vars.end(), variable) != 0;
    }
    if (!used) key[variable] = 0;
  }
  auto found = rows_[id].find(key);
  if (found == rows_[id].end()) {
    SoftmaxRow row{-kInfinity, 0};
    ForEachPoint(node, own,
                 [&](const Variables& p) { row.greatest = Maximum(row.greatest, value(p)); });
    if (row.greatest != -kInfinity) {
      ForEachPoint(node, own, [&](const Variables& p) {
        const double term = Round(node.type, std::exp(Round(node.type, value(p) - row.greatest)));
        row.sum = Round(node.type, row.sum + term);
      });
    }
    found = rows_[id].emplace(key, row).first;
  }
  const SoftmaxRow row = found->second;
  if (row.greatest == -kInfinity) return {node.type, 0, 0};
  Variables point = own;
  for (int variable : node.at) point.push_back(own[variable]);
  const double term = Round(node.type, std::exp(Round(node.type, value(point) - row.greatest)));
  return FloatScalar(node.type, term / row.sum, arithmetic_);
}

}  // namespace kiln::compiler
