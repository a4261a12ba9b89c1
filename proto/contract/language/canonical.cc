// SPDX-License-Identifier: Apache-2.0
#include "proto/contract/language/canonical.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "proto/contract/language/words.h"

namespace kiln::language {
namespace {

// An odd mantissa and a power of two, as in 0xcccccdp-27: one spelling for each value, made of
// integers alone.
std::string HexFloat(double value) {
  if (std::isnan(value)) return "nan";
  absl::string_view sign = std::signbit(value) ? "-" : "";
  if (std::isinf(value)) return absl::StrCat(sign, "inf");
  int exponent = 0;
  constexpr int kMantissaBits = 53;
  uint64_t mantissa =
      static_cast<uint64_t>(std::ldexp(std::frexp(std::fabs(value), &exponent), kMantissaBits));
  if (mantissa == 0) return absl::StrCat(sign, "0x0p0");
  exponent -= kMantissaBits;
  for (; mantissa % 2 == 0; mantissa /= 2) ++exponent;
  return absl::StrCat(sign, "0x", absl::Hex(mantissa), "p", exponent);
}

absl::string_view OpName(Op op) {
  switch (op) {
    case Op::kNeg:
      return "neg";
    case Op::kNot:
      return "not";
    case Op::kAdd:
      return "add";
    case Op::kSub:
      return "sub";
    case Op::kMul:
      return "mul";
    case Op::kDiv:
      return "div";
    case Op::kMod:
      return "mod";
    case Op::kFloorDiv:
      return "floordiv";
    case Op::kFloorMod:
      return "floormod";
    case Op::kPow:
      return "pow";
    case Op::kEq:
      return "eq";
    case Op::kNe:
      return "ne";
    case Op::kLt:
      return "lt";
    case Op::kLe:
      return "le";
    case Op::kGt:
      return "gt";
    case Op::kGe:
      return "ge";
    case Op::kAnd:
      return "and";
    case Op::kOr:
      return "or";
    case Op::kSelect:
      return "select";
    default:
      return FunctionName(op);
  }
}

absl::string_view KindName(TensorKind kind) {
  constexpr absl::string_view kNames[] = {"input", "constant", "output", "temporary"};
  return kNames[static_cast<int>(kind)];
}

class Writer {
 public:
  Writer(const Graph& graph, const Policy& policy) : graph_(graph), policy_(policy) {
    for (const Node& node : graph.nodes)
      numbers_.push_back(StandsInPlace(node) ? -1 : next_number_++);
  }

  std::string Run() {
    for (size_t i = 0; i < graph_.dims.size(); ++i) {
      absl::StrAppend(&out_, "d", i, " ", graph_.dims[i].lo, "..", graph_.dims[i].hi, "\n");
    }
    for (size_t i = 0; i < graph_.tensors.size(); ++i) WriteTensor(static_cast<int>(i));
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      if (numbers_[i] >= 0) WriteNode(static_cast<NodeId>(i));
    }
    for (size_t i = 0; i < graph_.tensors.size(); ++i) {
      if (graph_.tensors[i].definition.node < 0) continue;
      absl::StrAppend(&out_, "t", i, " = ");
      WriteTerm(graph_.tensors[i].definition);
      out_ += "\n";
    }
    WritePolicy();
    return std::move(out_);
  }

 private:
  // Literals, dims and variables are written where they are used.
  static bool StandsInPlace(const Node& node) {
    return node.op == Op::kLiteral || node.op == Op::kDim || node.op == Op::kVar;
  }

  void WriteTensor(int index) {
    const Tensor& tensor = graph_.tensors[index];
    absl::StrAppend(&out_, "t", index, " ", KindName(tensor.kind), " ", Print(tensor.type), " [");
    for (size_t axis = 0; axis < tensor.shape.size(); ++axis) {
      if (axis > 0) out_ += ",";
      WriteTerm(tensor.shape[axis]);
    }
    out_ += "]";
    if (tensor.kind != TensorKind::kTemporary) {
      for (size_t axis = 0; axis < tensor.strides.size() && !tensor.packed; ++axis) {
        absl::StrAppend(&out_, axis == 0 ? " strides " : ":", tensor.strides[axis]);
      }
      absl::StrAppend(&out_, " align ", tensor.alignment);
      if (tensor.alias_of >= 0) absl::StrAppend(&out_, " alias t", tensor.alias_of);
    }
    out_ += "\n";
  }

  void WriteTerm(const Term& term) {
    const Node& node = graph_.nodes[term.node];
    if (node.op == Op::kLiteral) return WriteLiteral(node);
    if (node.op == Op::kDim) {
      absl::StrAppend(&out_, "d", node.index);
    } else if (node.op == Op::kVar) {
      absl::StrAppend(&out_, "v", term.vars[0]);
    } else {
      absl::StrAppend(&out_, "n", numbers_[term.node]);
      for (size_t i = 0; i < term.vars.size(); ++i)
        absl::StrAppend(&out_, i == 0 ? "(" : ",", term.vars[i]);
      if (!term.vars.empty()) out_ += ")";
    }
  }

  // An i64 as it is: it is what subscripts and extents hold. Other types before the value.
  void WriteLiteral(const Node& node) {
    if (IsFloat(node.type)) {
      absl::StrAppend(&out_, Print(node.type), ":", HexFloat(node.number));
    } else if (node.type == DType::kI64) {
      absl::StrAppend(&out_, node.integer);
    } else {
      absl::StrAppend(&out_, Print(node.type), ":", node.integer);
    }
  }

  void WriteNode(NodeId id) {
    const Node& node = graph_.nodes[id];
    absl::StrAppend(&out_, "n", numbers_[id], " ", Print(node.type), " ");
    switch (node.op) {
      case Op::kRead:
        absl::StrAppend(&out_, "read t", node.index);
        break;
      case Op::kCast:
        absl::StrAppend(&out_, "cast ", Print(node.storage));
        break;
      case Op::kReduce:
        absl::StrAppend(&out_, ReductionName(node.reduce), " acc ", Print(node.accumulator));
        break;
      case Op::kSoftmax:
        out_ += "softmax at";
        for (size_t i = 0; i < node.at.size(); ++i)
          absl::StrAppend(&out_, i == 0 ? " " : ",", node.at[i]);
        break;
      default:
        absl::StrAppend(&out_, OpName(node.op));
    }
    for (size_t i = 0; i < node.args.size(); ++i) {
      out_ += node.has_else && i + 1 == node.args.size() ? " else " : " ";
      WriteTerm(node.args[i]);
    }
    for (size_t i = 0; i < node.bound.size(); ++i) {
      absl::StrAppend(&out_, i == 0 ? " for v" : ", v", node.free_vars + i, " in ");
      WriteTerm(node.bound[i].lo);
      out_ += "..";
      WriteTerm(node.bound[i].hi);
    }
    out_ += "\n";
  }

  // Accumulators stand at the nodes.
  void WritePolicy() {
    out_ += "policy";
    if (policy_.tf32) out_ += " tf32";
    if (policy_.finite_only) out_ += " finite_only";
    if (policy_.approximate) out_ += " approximate";
    if (policy_.fixed_order) out_ += " order=fixed";
    if (!policy_.library) out_ += " library=no";
    out_ += "\n";
  }

  const Graph& graph_;
  const Policy& policy_;
  std::vector<int> numbers_;  // of nodes with a line; -1 for those without
  int next_number_ = 0;
  std::string out_;
};

}  // namespace

std::string CanonicalText(const Graph& graph, const Policy& policy) {
  return Writer(graph, policy).Run();
}

}  // namespace kiln::language
