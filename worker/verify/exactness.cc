// SPDX-License-Identifier: Apache-2.0
#include "worker/verify/exactness.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "worker/compiler/analysis/affine.h"
#include "worker/compiler/analysis/host_tensor.h"

namespace kiln::verify {
namespace {

// All values of a node are multiples of 2^grain and at most `size`. Infinities and NaN never round
// and do not count.
struct Grid {
  bool exact = false;
  double size = 0;
  int grain = 0;
};

constexpr Grid kInexact{};

int PrecisionOf(DType type) {
  switch (type) {
    case DType::kF64:
      return 53;
    case DType::kF16:
      return 11;
    case DType::kBf16:
      return 8;
    case DType::kE4m3:
      return 4;
    case DType::kE5m2:
      return 3;
    default:
      return 24;
  }
}

double GreatestOf(DType type) {
  if (type == DType::kE4m3) return 448;
  return type == DType::kF16 || type == DType::kE5m2 ? 57344 : 0x1p100;
}

bool Fits(const Grid& grid, DType type) {
  if (!grid.exact || !IsFloat(type)) return grid.exact;
  return std::ldexp(grid.size, -grid.grain) <= std::ldexp(1, PrecisionOf(type)) &&
         grid.grain >= -100 && grid.size <= GreatestOf(type);
}

Grid GridOf(double number) {
  if (!std::isfinite(number) || number == 0) return {true, 0, 0};
  int grain = std::ilogb(number) - 52;
  while (std::fmod(std::ldexp(number, -grain), 2) == 0) ++grain;
  return {true, std::fabs(number), std::min(grain, 0)};
}

class ExactnessCheck {
 public:
  ExactnessCheck(const Workload& workload, int magnitude)
      : graph_(workload.graph),
        affine_(graph_),
        tf32_(workload.policy.tf32),
        magnitude_(magnitude) {}

  std::vector<bool> Run();

 private:
  Grid Compute(const Node& node);
  Grid ComputeReduction(const Node& node) const;
  Grid ComputeFloat(const Node& node) const;
  Grid Read(const Node& node) const;
  // An argument as an operand of a float operation.
  Grid Operand(const Term& term) const;
  bool ArgumentsExact(const Node& node) const;

  const Graph& graph_;
  compiler::AffineTable affine_;
  const bool tf32_;
  const int magnitude_;
  std::vector<Grid> nodes_, tensors_;
};

bool ExactnessCheck::ArgumentsExact(const Node& node) const {
  return std::all_of(node.args.begin(), node.args.end(),
                     [&](const Term& a) { return nodes_[a.node].exact; });
}

Grid ExactnessCheck::Operand(const Term& term) const {
  const Node& node = graph_.nodes[term.node];
  if (IsFloat(node.type)) return nodes_[term.node];
  if (!nodes_[term.node].exact) return kInexact;
  if (node.type == DType::kBool) return {true, 1, 0};
  if (node.op == Op::kLiteral) return GridOf(static_cast<double>(node.integer));
  return kInexact;  // its size is not followed
}

Grid ExactnessCheck::Read(const Node& node) const {
  const Tensor& tensor = graph_.tensors[node.index];
  if (!ArgumentsExact(node)) return kInexact;
  Grid grid = tensors_[node.index];
  if (node.has_else && IsFloat(node.type)) {
    const Grid other = Operand(node.args.back());
    grid = {grid.exact && other.exact, std::max(grid.size, other.size),
            std::min(grid.grain, other.grain)};
  }
  if (IsFloat(node.type) && !IsFloat(tensor.type)) return kInexact;
  return grid;
}

Grid ExactnessCheck::ComputeReduction(const Node& node) const {
  if (!ArgumentsExact(node)) return kInexact;
  for (const Range& range : node.bound) {
    if (!nodes_[range.lo.node].exact || !nodes_[range.hi.node].exact) return kInexact;
  }
  if (!IsFloat(node.type)) return {true, 0, 0};
  const Grid term = Operand(node.args[0]);
  if (node.reduce == ReduceOp::kMax || node.reduce == ReduceOp::kMin) return term;
  if (node.reduce != ReduceOp::kSum) return kInexact;
  double count = 1;
  for (const Range& range : node.bound) {
    const std::optional<int64_t> lo = affine_.ConstantOf(range.lo),
                                 hi = affine_.ConstantOf(range.hi);
    if (!lo || !hi) return kInexact;
    count *= static_cast<double>(std::max<int64_t>(0, *hi - *lo));
  }
  const Grid sum{term.exact, term.size * count, term.grain};
  return Fits(sum, node.accumulator) ? sum : kInexact;
}

Grid ExactnessCheck::ComputeFloat(const Node& node) const {
  const Grid a = Operand(node.args[0]);
  const Grid b = node.args.size() > 1 ? Operand(node.args[1]) : a;
  const bool exact = a.exact && b.exact;
  const double greater = std::max(a.size, b.size);
  const int finer = std::min(a.grain, b.grain);
  switch (node.op) {
    case Op::kNeg:
    case Op::kAbs:
    case Op::kRelu:
      return a;
    case Op::kFloor:
    case Op::kCeil:
    case Op::kRound:
      return {a.exact, a.size + 1, std::max(a.grain, 0)};
    case Op::kMin:
    case Op::kMax:
      return {exact, greater, finer};
    case Op::kAdd:
    case Op::kSub:
      return {exact, a.size + b.size, finer};
    case Op::kMul: {
      // tf32 keeps as many bits as f16.
      const bool kept = !tf32_ || (Fits(a, DType::kF16) && Fits(b, DType::kF16));
      return {exact && kept, a.size * b.size, a.grain + b.grain};
    }
    case Op::kSelect: {
      const Grid x = Operand(node.args[1]), y = Operand(node.args[2]);
      return {a.exact && x.exact && y.exact, std::max(x.size, y.size), std::min(x.grain, y.grain)};
    }
    case Op::kPow: {
      const Node& n = graph_.nodes[node.args[1].node];
      if (n.op != Op::kLiteral || !IsFloat(n.type)) return kInexact;
      if (n.number != 1 && n.number != 2 && n.number != 3 && n.number != 4) return kInexact;
      return {a.exact, std::pow(std::max(a.size, 1.0), n.number),
              a.grain * static_cast<int>(n.number)};
    }
    default:
      return kInexact;
  }
}

Grid ExactnessCheck::Compute(const Node& node) {
  switch (node.op) {
    case Op::kLiteral:
      if (!IsFloat(node.type)) return {true, 0, 0};
      return std::isfinite(node.number) && compiler::RoundTo(node.type, node.number) != node.number
                 ? kInexact
                 : GridOf(node.number);
    case Op::kVar:
    case Op::kDim:
      return {true, 0, 0};
    case Op::kRead:
      return Read(node);
    case Op::kReduce:
      return ComputeReduction(node);
    case Op::kSoftmax:
      return kInexact;
    case Op::kCast:
      // The exact value rounds the same way everywhere.
      return IsFloat(node.type) ? Operand(node.args[0]) : Grid{ArgumentsExact(node), 0, 0};
    default:
      if (!IsFloat(node.type)) return {ArgumentsExact(node), 0, 0};
      return ComputeFloat(node);
  }
}

std::vector<bool> ExactnessCheck::Run() {
  for (const Tensor& tensor : graph_.tensors) {
    const bool given = tensor.definition.node < 0;
    tensors_.push_back({given, given ? static_cast<double>(magnitude_) : 0, 0});
  }
  // A tensor's nodes come before the nodes that read it only in `order`, not in the list: repeat
  // until nothing changes.
  std::vector<bool> exact;
  for (size_t round = 0; round <= graph_.order.size(); ++round) {
    nodes_.clear();
    for (const Node& node : graph_.nodes) {
      Grid grid = Compute(node);
      if (IsFloat(node.type) && !Fits(grid, node.type)) grid = kInexact;
      nodes_.push_back(grid);
    }
    for (int t : graph_.order) {
      const Term& definition = graph_.tensors[t].definition;
      tensors_[t] = IsFloat(graph_.tensors[t].type) ? Operand(definition)
                                                    : Grid{nodes_[definition.node].exact, 0, 0};
    }
  }
  for (size_t t = 0; t < graph_.tensors.size(); ++t) {
    if (graph_.tensors[t].kind == TensorKind::kOutput) exact.push_back(tensors_[t].exact);
  }
  return exact;
}

}  // namespace

std::vector<bool> ExactOutputs(const Workload& workload, int magnitude) {
  return ExactnessCheck(workload, magnitude).Run();
}

int SmallMagnitude(const Workload& workload) {
  int best = 2;
  int64_t most = 0;
  for (int magnitude : {8, 4, 2, 1}) {
    const std::vector<bool> exact = ExactOutputs(workload, magnitude);
    const int64_t count = std::count(exact.begin(), exact.end(), true);
    if (count <= most) continue;
    most = count;
    best = magnitude;
  }
  return best;
}

}  // namespace kiln::verify
