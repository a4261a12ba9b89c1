// SPDX-License-Identifier: Apache-2.0
// Numbers about a graph: values and bounds of integer terms, shapes, spans (graph.h, workload.h).
#include <algorithm>
#include <map>

#include "proto/contract/language/affine.h"
#include "proto/contract/workload.h"

namespace kiln {
namespace {

using language::AddIntervals;
using language::DivIntervals;
using language::kAnything;
using language::kUnknown;
using language::ModIntervals;
using language::MulIntervals;
using language::NegInterval;

// A sum of variables with factors and a rest of which the range is known.
struct Linear {
  std::map<int, int64_t> factors;  // of variables of the enclosing node; none is 0
  Interval rest;
};

class TermBounds {
 public:
  using Key = std::pair<NodeId, std::vector<int>>;

  TermBounds(const Graph& graph, const std::vector<Interval>& vars) : graph_(graph), vars_(vars) {}

  Interval Range(const Linear& linear) const {
    Interval sum = linear.rest;
    for (const auto& [var, factor] : linear.factors)
      sum = AddIntervals(sum, MulIntervals({factor, factor}, VarRange(var)));
    return sum;
  }

  // `vars` are those of the enclosing node that the term's variables stand for. With a stack of its
  // own: sums of thousands of terms are chains of nodes.
  Linear Collect(NodeId id, const std::vector<int>& vars) {
    std::vector<Key> stack{{id, vars}};
    while (!stack.empty()) {
      const Key key = stack.back();
      size_t waiting = stack.size();
      if (found_.count(key) == 0) {
        for (const Key& child : ChildrenOf(key)) {
          if (found_.count(child) == 0) stack.push_back(child);
        }
      }
      if (stack.size() > waiting) continue;
      if (found_.count(key) == 0) found_[key] = Compute(graph_.nodes[key.first], key.second);
      stack.pop_back();
    }
    return found_[{id, vars}];
  }

 private:
  Interval VarRange(int var) const {
    return var >= 0 && var < static_cast<int>(vars_.size()) ? vars_[var] : kAnything;
  }

  Key Child(const Term& term, const std::vector<int>& vars) const {
    std::vector<int> outer;
    for (int var : term.vars) outer.push_back(var < static_cast<int>(vars.size()) ? vars[var] : -1);
    return {term.node, std::move(outer)};
  }

  // What Compute looks at.
  std::vector<Key> ChildrenOf(const Key& key) const {
    const Node& node = graph_.nodes[key.first];
    std::vector<Key> children;
    bool integer = node.op == Op::kNeg || node.op == Op::kAdd || node.op == Op::kSub ||
                   node.op == Op::kMul || node.op == Op::kFloorDiv || node.op == Op::kFloorMod ||
                   node.op == Op::kCast;
    if (integer) {
      for (const Term& term : node.args) children.push_back(Child(term, key.second));
    } else if (node.has_else) {
      children.push_back(Child(node.args.back(), key.second));
    }
    return children;
  }

  const Linear& Argument(const Node& node, size_t index, const std::vector<int>& vars) const {
    return found_.at(Child(node.args[index], vars));
  }

  Linear Compute(const Node& node, const std::vector<int>& vars) const {
    auto of = [this, &node, &vars](size_t index) -> const Linear& {
      return Argument(node, index, vars);
    };
    switch (node.op) {
      case Op::kLiteral:
        return {{}, AddIntervals({node.integer, node.integer}, {0, 0})};  // saturates
      case Op::kDim:
        return {{}, {graph_.dims[node.index].lo, graph_.dims[node.index].hi}};
      case Op::kVar:
        return vars[0] < 0 ? Linear{{}, kAnything} : Linear{{{vars[0], 1}}, {0, 0}};
      case Op::kNeg:
        return Scaled(of(0), -1);
      case Op::kAdd:
        return Sum(of(0), of(1), 1);
      case Op::kSub:
        return Sum(of(0), of(1), -1);
      case Op::kMul:
        return Product(of(0), of(1));
      case Op::kFloorDiv:
        return {{}, DivIntervals(Range(of(0)), Range(of(1)))};
      case Op::kFloorMod:
        return {{}, ModIntervals(Range(of(0)), Range(of(1)))};
      case Op::kRead:
        return {{}, WithElse(node, vars, language::RangeOfType(graph_.tensors[node.index].type))};
      case Op::kCast:
        return Cast(node, of(0));
      default:
        return {{}, language::RangeOfType(node.type)};
    }
  }

  Interval WithElse(const Node& node, const std::vector<int>& vars, Interval range) const {
    if (!node.has_else) return range;
    Interval otherwise = Range(Argument(node, node.args.size() - 1, vars));
    return {std::min(range.lo, otherwise.lo), std::max(range.hi, otherwise.hi)};
  }

  // A cast that changes no value of the range keeps it.
  Linear Cast(const Node& node, const Linear& value) const {
    Interval type = language::RangeOfType(node.storage), range = Range(value);
    bool from_integer = IsInteger(node.storage);
    return from_integer && range.lo >= type.lo && range.hi <= type.hi ? value : Linear{{}, type};
  }

  Linear Scaled(Linear linear, int64_t factor) const {
    Interval range = MulIntervals(Range(linear), {factor, factor});
    for (auto& entry : linear.factors) {
      int64_t scaled = 0;
      if (__builtin_mul_overflow(entry.second, factor, &scaled) || scaled >= kUnknown ||
          scaled <= -kUnknown)
        return {{}, range};
      entry.second = scaled;
    }
    if (factor == 0) linear.factors.clear();
    linear.rest = factor < 0 ? MulIntervals(NegInterval(linear.rest), {-factor, -factor})
                             : MulIntervals(linear.rest, {factor, factor});
    return linear;
  }

  Linear Sum(Linear a, const Linear& b, int64_t sign) const {
    Linear scaled = Scaled(b, sign);
    for (const auto& [var, factor] : scaled.factors) {
      int64_t& into = a.factors[var];
      if (__builtin_add_overflow(into, factor, &into)) return {{}, kAnything};
      if (into == 0) a.factors.erase(var);
    }
    a.rest = AddIntervals(a.rest, scaled.rest);
    return a;
  }

  Linear Product(const Linear& a, const Linear& b) const {
    if (a.factors.empty() && a.rest.lo == a.rest.hi) return Scaled(b, a.rest.lo);
    if (b.factors.empty() && b.rest.lo == b.rest.hi) return Scaled(a, b.rest.lo);
    return {{}, MulIntervals(Range(a), Range(b))};
  }

  const Graph& graph_;
  const std::vector<Interval>& vars_;
  std::map<Key, Linear> found_;
};

// Elements from the first to one past the last, at the upper ends of dynamic dims; saturates.
int64_t HighestSpan(const Graph& graph, const Tensor& tensor) {
  Interval last{0, 0}, packed{1, 1};
  for (size_t axis = tensor.shape.size(); axis-- > 0;) {
    int64_t extent = Bounds(graph, tensor.shape[axis], {}).hi;
    if (extent <= 0) return 0;
    Interval stride = tensor.packed ? packed : Interval{tensor.strides[axis], tensor.strides[axis]};
    last = AddIntervals(last, MulIntervals(stride, {extent - 1, extent - 1}));
    packed = MulIntervals(packed, {extent, extent});
  }
  return AddIntervals(last, {1, 1}).hi;
}

}  // namespace

Interval Bounds(const Graph& graph, const Term& term, const std::vector<Interval>& vars) {
  TermBounds bounds(graph, vars);
  return bounds.Range(bounds.Collect(term.node, term.vars));
}

int64_t StaticValue(const Graph& graph, const Term& term) {
  const Node& node = graph.nodes[term.node];
  return node.op == Op::kLiteral ? node.integer : Bounds(graph, term, {}).lo;
}

std::vector<int64_t> StaticShape(const Graph& graph, const Tensor& tensor) {
  std::vector<int64_t> shape;
  for (const Term& extent : tensor.shape) shape.push_back(StaticValue(graph, extent));
  return shape;
}

int64_t SpanElements(const Graph& graph, const Tensor& tensor) {
  return HighestSpan(graph, tensor);
}

int64_t FootprintBytes(const Graph& graph) {
  Interval total{0, 0};
  for (const Tensor& tensor : graph.tensors) {
    if (tensor.kind == TensorKind::kTemporary || tensor.alias_of >= 0) continue;
    int64_t span = HighestSpan(graph, tensor);
    Interval bytes = DivIntervals(
        AddIntervals(MulIntervals({span, span}, {Bits(tensor.type), Bits(tensor.type)}), {7, 7}),
        {8, 8});
    if (span >= kUnknown / 8) bytes = {kUnknown, kUnknown};
    total = AddIntervals(total, bytes);
  }
  return total.hi;
}

}  // namespace kiln
