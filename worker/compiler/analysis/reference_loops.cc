// SPDX-License-Identifier: Apache-2.0
// Reductions and softmax of ReferenceBody.
#include "absl/strings/str_cat.h"
#include "worker/compiler/analysis/host_tensor.h"
#include "worker/compiler/analysis/reference_body.h"

namespace kiln::compiler {
namespace {

using Error = ReferenceValue::Error;

// Partial sums that run side by side where no free variable does, so that the compiler can use
// vectors.
constexpr int kLanes = 8;

bool IsSum(const Node& node) {
  return node.reduce == ReduceOp::kSum || node.reduce == ReduceOp::kAvg;
}

// The C++ start value of an accumulator.
std::string Start(const Node& node) {
  switch (node.reduce) {
    case ReduceOp::kProd:
      return "1";
    case ReduceOp::kMax:
      return IsFloat(node.type) ? "-kInf" : node.type == DType::kI64 ? "INT64_MIN" : "INT32_MIN";
    case ReduceOp::kMin:
      return IsFloat(node.type) ? "kInf" : node.type == DType::kI64 ? "INT64_MAX" : "INT32_MAX";
    case ReduceOp::kAll:
      return "1";
    default:
      return "0";
  }
}

// The type that terms are accumulated in: that of the node, or integers below an average of
// integers.
DType TermType(const Node& node) {
  if (node.reduce == ReduceOp::kAny || node.reduce == ReduceOp::kAll) return DType::kBool;
  return IsFloat(node.accumulator) ? node.type : ComputeType(node.accumulator);
}

}  // namespace

// Opens loops over the first `count` ranges and adds their variables to the scope.
void ReferenceBody::EmitBoundLoops(const Node& node, std::vector<std::string>& scope,
                                   size_t count) {
  for (size_t i = 0; i < count; ++i) {
    const std::string lo = EmitInteger(node.bound[i].lo, scope).text;
    const std::string hi = EmitInteger(node.bound[i].hi, scope).text;
    const std::string r = Fresh("r");
    Open(absl::StrCat("for (int64_t ", r, " = ", lo, "; ", r, " < ", hi, "; ++", r, ") {"));
    scope.push_back(r);
  }
}

void ReferenceBody::Accumulate(const Accumulators& acc, const ReferenceValue& term,
                               const std::string& slot) {
  const Node& node = *acc.node;
  const std::string a = absl::StrCat("a", acc.id, "[", slot, "]");
  const std::string g = absl::StrCat("g", acc.id, "[", slot, "]");
  const std::string e = absl::StrCat("e", acc.id, "[", slot, "]");
  const bool is_float = IsFloat(term.type);
  switch (node.reduce) {
    case ReduceOp::kProd:
      if (is_float) {
        const double unit = rounding(node.accumulator).unit;
        Line(absl::StrCat(e, " = Bound(", a, " * ", term.text, ", Times(", a, ", ", ErrorOf(term),
                          ") + Times(", term.text, ", ", e, ") + ", Hex(unit), " * std::fabs(", a,
                          " * ", term.text, "), ", Hex(rounding(node.accumulator).top), ");"));
        Line(absl::StrCat(a, " *= ", term.text, ";"));
        return;
      }
      Line(absl::StrCat(a, " = IMul(", a, ", ", term.text, ");"));
      break;
    case ReduceOp::kMax:
    case ReduceOp::kMin: {
      const char* name = node.reduce == ReduceOp::kMax ? "Max(" : "Min(";
      Line(absl::StrCat(a, " = ", is_float ? "" : "I", name, a, ", ", term.text, ");"));
      break;
    }
    case ReduceOp::kAny:
      Line(absl::StrCat(a, " |= static_cast<int64_t>(", term.text, ");"));
      break;
    case ReduceOp::kAll:
      Line(absl::StrCat(a, " &= static_cast<int64_t>(", term.text, ");"));
      break;
    default:
      if (is_float) {
        Line(absl::StrCat(a, " += ", term.text, ";"));
        Line(absl::StrCat(g, " += std::fabs(", term.text, ");"));
      } else {
        Line(absl::StrCat(a, " = IAdd(", a, ", ", term.text, ");"));
      }
      if (term.kind == Error::kNamed) Line(absl::StrCat(e, " += ", term.error, ";"));
      return;
  }
  if (acc.kind == Error::kNamed) Line(absl::StrCat(e, " = Wider(", e, ", ", ErrorOf(term), ");"));
}

ReferenceBody::Accumulators ReferenceBody::EmitReduction(const Node& node,
                                                         const std::vector<std::string>& own,
                                                         const InnerLoop* inner) {
  Accumulators acc{Fresh(""), &node, Error::kExact, 0};
  const bool lanes = inner == nullptr && IsSum(node) && IsFloat(node.accumulator);
  const int64_t slots = inner != nullptr ? inner->slots : lanes ? kLanes : 1;
  const std::string n = absl::StrCat("n", acc.id), s = absl::StrCat("s", acc.id);
  // The loops are written first, to know what the terms need; their declarations go before them.
  std::string before;
  std::swap(before, text_);
  std::vector<std::string> scope = own;
  EmitBoundLoops(node, scope, node.bound.size() - 1);
  const std::string lo = EmitInteger(node.bound.back().lo, scope).text;
  const std::string hi = EmitInteger(node.bound.back().hi, scope).text;
  const std::string r = Fresh("r");
  scope.push_back(r);
  Line(absl::StrCat(n, " += ", hi, " > ", lo, " ? ", hi, " - ", lo, " : 0;"));
  if (inner != nullptr) {
    Open(absl::StrCat("for (int64_t ", r, " = ", lo, "; ", r, " < ", hi, "; ++", r, ") {"));
    Open(absl::StrCat("for (int64_t ", inner->variable, " = ", inner->begin, "; ", inner->variable,
                      " < ", inner->end, "; ++", inner->variable, ") {"));
    Line(absl::StrCat("const int64_t ", s, " = ", inner->variable, " - ", inner->begin, ";"));
  } else {
    Open(absl::StrCat("auto step", acc.id, " = [&](int64_t ", r, ", int64_t ", s, ") {"));
  }
  in_product_ = IsSum(node);
  const ReferenceValue term = ConvertTo(TermType(node), Emit(node.args[0], scope));
  in_product_ = false;
  acc.kind = term.kind;
  acc.coefficient = term.coefficient;
  if (term.kind == Error::kRelative && !IsSum(node)) acc.kind = Error::kNamed;
  if (node.reduce == ReduceOp::kProd && IsFloat(term.type)) acc.kind = Error::kNamed;
  Accumulate(acc, term, s);
  Close();
  if (inner != nullptr) {
    Close();
  } else {
    text_.back() = ';';  // the lambda's end
    text_.push_back('\n');
    const std::string k = Fresh("k");
    Line(absl::StrCat("int64_t ", k, " = ", lo, ";"));
    if (lanes) {
      Line(absl::StrCat("for (; ", k, " + ", kLanes, " <= ", hi, "; ", k, " += ", kLanes, ")"));
      Line(absl::StrCat("  for (int64_t l = 0; l < ", kLanes, "; ++l) step", acc.id, "(", k,
                        " + l, l);"));
    }
    Line(absl::StrCat("for (; ", k, " < ", hi, "; ++", k, ") step", acc.id, "(", k, ", 0);"));
  }
  for (size_t i = 0; i + 1 < node.bound.size(); ++i) Close();
  std::swap(before, text_);
  Line(absl::StrCat("int64_t ", n, " = 0;"));
  const std::string type = CType(TermType(node)) == "double" ? "double" : "int64_t";
  Line(absl::StrCat(type, " a", acc.id, "[", slots, "];"));
  Line(absl::StrCat("double g", acc.id, "[", slots, "] = {}, e", acc.id, "[", slots, "] = {};"));
  Line(absl::StrCat("for (auto& a : a", acc.id, ") a = ", Start(node), ";"));
  text_ += before;
  if (lanes) {
    Line(absl::StrCat("for (int l = 1; l < ", kLanes, "; ++l) a", acc.id, "[0] += a", acc.id,
                      "[l], g", acc.id, "[0] += g", acc.id, "[l], e", acc.id, "[0] += e", acc.id,
                      "[l];"));
  }
  return acc;
}

ReferenceValue ReferenceBody::Result(const Accumulators& acc, const std::string& slot) {
  const Node& node = *acc.node;
  const std::string a = absl::StrCat("a", acc.id, "[", slot, "]");
  const std::string g = absl::StrCat("g", acc.id, "[", slot, "]");
  const std::string e = absl::StrCat("e", acc.id, "[", slot, "]");
  const std::string n = absl::StrCat("n", acc.id);
  const DType type = TermType(node);
  if (!IsFloat(type)) {
    std::string text = type == DType::kBool  ? absl::StrCat(a, " != 0")
                       : type == DType::kI32 ? absl::StrCat("WrapSigned(", a, ", 32)")
                                             : a;
    ReferenceValue value = Declare(type, text);
    if (acc.kind != Error::kExact) SetError(value, e);
    if (node.reduce != ReduceOp::kAvg) return ConvertTo(node.type, value);
    ReferenceValue average =
        Declare(node.type, absl::StrCat("static_cast<double>(", value.text, ") / ", n));
    SetError(average, absl::StrCat(ErrorOf(value), " + ", Hex(2 * rounding(node.type).unit),
                                   " * std::fabs(", average.text, ")"));
    return average;
  }
  if (!IsSum(node)) {
    ReferenceValue value = Declare(node.type, a);
    if (acc.kind != Error::kExact)
      SetError(value, absl::StrCat("Bound(", value.text, ", ", e, ", kInf)"));
    return value;
  }
  const Rounding r = rounding(node.accumulator);
  std::string terms;
  if (acc.kind == Error::kExact) absl::StrAppend(&terms, "0.0");
  if (acc.kind == Error::kNamed) terms = e;
  if (acc.kind == Error::kRelative) {
    terms = absl::StrCat(Hex(acc.coefficient), " * ", g, " + ", Hex(8 * r.floor),
                         " * static_cast<double>(", n, ")");
  }
  const std::string error =
      absl::StrCat("(", g, " > ", Hex(r.top), " ? kInf : ", terms, " + Growth(static_cast<double>(",
                   n, ")) * ", Hex(r.unit), " * ", g, ")");
  ReferenceValue sum = Declare(node.type, a);
  if (node.reduce == ReduceOp::kSum) {
    SetError(sum, absl::StrCat("Bound(", sum.text, ", ", error, ", ", Hex(r.top), ")"));
    return sum;
  }
  ReferenceValue average =
      Declare(node.type, absl::StrCat(sum.text, " / static_cast<double>(", n, ")"));
  SetError(average, absl::StrCat("Bound(", average.text, ", ", error, " / static_cast<double>(", n,
                                 ") + ", Hex(2 * rounding(node.type).unit), " * std::fabs(",
                                 average.text, ") + ", Hex(8 * r.floor), ", ", Hex(r.top), ")"));
  return average;
}

ReferenceValue ReferenceBody::EmitInlineReduction(const Node& node,
                                                  const std::vector<std::string>& own) {
  if (node.reduce == ReduceOp::kArgmax || node.reduce == ReduceOp::kArgmin) {
    return EmitArgReduction(node, own);
  }
  return Result(EmitReduction(node, own, nullptr), "0");
}

// One pass finds the index; where terms have errors, another looks whether a second one comes too
// close.
ReferenceValue ReferenceBody::EmitArgReduction(const Node& node,
                                               const std::vector<std::string>& own) {
  const std::string id = Fresh("");
  const std::string best = absl::StrCat("best", id), error = absl::StrCat("error", id),
                    at = absl::StrCat("at", id), close = absl::StrCat("close", id);
  std::string before;
  std::swap(before, text_);
  DType type = DType::kF32;
  bool exact = true;
  for (int pass = 0; pass < (exact ? 1 : 2); ++pass) {
    std::vector<std::string> scope = own;
    EmitBoundLoops(node, scope, 1);
    const std::string r = scope.back();
    ReferenceValue term = Emit(node.args[0], scope);
    if (term.type == DType::kBool) term = ConvertTo(DType::kI32, term);
    type = term.type;
    exact = term.kind == Error::kExact;
    const std::string e = ErrorOf(term);
    if (pass == 0) {
      const std::string above = node.reduce == ReduceOp::kArgmax
                                    ? absl::StrCat("Above(", term.text, ", ", best, ")")
                                    : absl::StrCat("Above(", best, ", ", term.text, ")");
      Line(absl::StrCat("if (", at, " == INT64_MIN || (!IsNan(", best, ") && (IsNan(", term.text,
                        ") || ", above, "))) ", best, " = ", term.text, ", ", error, " = ", e, ", ",
                        at, " = ", r, ";"));
    } else if (IsFloat(type)) {
      Line(absl::StrCat("if (", r, " != ", at, " && Unsure(", best, ", ", error, ", ", term.text,
                        ", ", e, ") > 0) ", close, " = kInf;"));
    } else {
      Line(absl::StrCat("if (", e, " > 0) ", close, " = kInf;"));
    }
    Close();
  }
  std::swap(before, text_);
  Line(absl::StrCat(CType(type), " ", best, " = 0;"));
  Line(absl::StrCat("double ", error, " = 0, ", close, " = 0;"));
  Line(absl::StrCat("int64_t ", at, " = INT64_MIN;"));
  text_ += before;
  Line(absl::StrCat("static_cast<void>(", error, ");"));
  ReferenceValue value = Declare(node.type, at);
  if (!exact) SetError(value, close);
  return value;
}

// N: greatest value, Z: sum of exp(value - greatest), M: error of any value of the row, W: relative
// error of Z.
void ReferenceBody::EmitSoftmaxRow(NodeId id, const std::vector<std::string>& own) {
  const Node& node = graph_.nodes[id];
  const Rounding r = rounding(node.type);
  const double function = scene_.policy.approximate ? 0x1p-10 : 8 * r.unit;
  Line("double greatest = -kInf, worst = 0, sum = 0, error = 0;");
  Line("int64_t terms = 0;");
  for (int pass = 0; pass < 2; ++pass) {
    if (pass == 1) Open("if (greatest != -kInf) {");
    std::vector<std::string> scope = own;
    EmitBoundLoops(node, scope, node.bound.size());
    const ReferenceValue x = ConvertTo(node.type, Emit(node.args[0], scope));
    if (pass == 0) {
      Line(absl::StrCat("greatest = Max(greatest, ", x.text, ");"));
      Line(absl::StrCat("worst = Wider(worst, ", ErrorOf(x), ");"));
      Line("++terms;");
    } else {
      Line(absl::StrCat("const double p = Exp(", x.text, " - greatest);"));
      Line("sum += p;");
      Line(absl::StrCat("if (p > 0) error += p * (2 * worst + ", Hex(r.unit), " * std::fabs(",
                        x.text, " - greatest) + ", Hex(function), ");"));
    }
    for (size_t i = 0; i < node.bound.size(); ++i) Close();
    if (pass == 1) Close();
  }
  const std::string index = KeptIndex(id, own);
  auto store = [&](const char* array, const std::string& value) {
    Line(absl::StrCat(Use(absl::StrCat(array, id)), "[", index, "] = ", value, ";"));
  };
  store("N", "greatest");
  store("Z", "sum");
  store("M", "worst");
  store("W", absl::StrCat("sum > 0 ? error / sum + Growth(static_cast<double>(terms)) * ",
                          Hex(r.unit), " : 0"));
}

ReferenceValue ReferenceBody::EmitSoftmaxElement(NodeId id, const std::vector<std::string>& own) {
  const Node& node = graph_.nodes[id];
  const Rounding r = rounding(node.type);
  const double function = scene_.policy.approximate ? 0x1p-9 : 9 * r.unit;
  std::vector<std::string> scope = own;
  for (int variable : node.at) scope.push_back(own[variable]);
  const ReferenceValue x = ConvertTo(node.type, Emit(node.args[0], scope));
  const std::string index = KeptIndex(id, own);
  auto load = [&](const char* array) {
    return absl::StrCat(Use(absl::StrCat(array, id)), "[", index, "]");
  };
  const std::string m = load("N");
  ReferenceValue value = Declare(
      node.type, absl::StrCat(m, " == -kInf ? 0.0 : Exp(", x.text, " - ", m, ") / ", load("Z")));
  SetError(value, absl::StrCat("Bound(", value.text, ", ", value.text, " == 0 ? ", Hex(8 * r.floor),
                               " : ", value.text, " * (2 * ", load("M"), " + ", load("W"), " + ",
                               Hex(r.unit), " * std::fabs(", x.text, " - ", m, ") + ",
                               Hex(function), ") + ", Hex(8 * r.floor), ", ", Hex(r.top), ")"));
  return value;
}

}  // namespace kiln::compiler
