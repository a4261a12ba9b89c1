// SPDX-License-Identifier: Apache-2.0
// Elementwise operations of ReferenceBody and how errors go through them.
#include "absl/strings/str_cat.h"
#include "worker/compiler/analysis/host_tensor.h"
#include "worker/compiler/analysis/reference_body.h"

namespace kiln::compiler {
namespace {

using Error = ReferenceValue::Error;

bool IsExact(const ReferenceValue& value) { return value.kind == Error::kExact; }

// Roundoffs that a function within 4 ulp may be off, and a relative 2^-10 where the policy allows
// that.
constexpr double kFunctionUnits = 8;
constexpr double kApproximate = 0x1p-10;

const char* FunctionName(Op op, DType type) {
  const bool wide = type == DType::kF64;
  switch (op) {
    case Op::kExp:
      return "Exp";
    case Op::kLog:
      return "Log";
    case Op::kSqrt:
      return "Sqrt";
    case Op::kRsqrt:
      return "Rsqrt";
    case Op::kTanh:
      return "Tanh";
    case Op::kSigmoid:
      return wide ? "SigmoidF64" : "Sigmoid";
    case Op::kErf:
      return "Erf";
    case Op::kGelu:
      return wide ? "GeluF64" : "Gelu";
    case Op::kSilu:
      return wide ? "SiluF64" : "Silu";
    case Op::kFloor:
      return "Floor";
    case Op::kCeil:
      return "Ceil";
    case Op::kRound:
      return "Round";
    case Op::kSin:
      return "Sin";
    case Op::kCos:
      return "Cos";
    default:
      return nullptr;
  }
}

const char* ComparisonSign(Op op) {
  switch (op) {
    case Op::kEq:
      return " == ";
    case Op::kNe:
      return " != ";
    case Op::kLt:
      return " < ";
    case Op::kLe:
      return " <= ";
    case Op::kGt:
      return " > ";
    default:
      return " >= ";
  }
}

const char* IntegerFunction(Op op) {
  switch (op) {
    case Op::kNeg:
      return "INeg";
    case Op::kAdd:
      return "IAdd";
    case Op::kSub:
      return "ISub";
    case Op::kMul:
      return "IMul";
    case Op::kDiv:
      return "IDiv";
    case Op::kMod:
      return "IMod";
    case Op::kFloorDiv:
      return "FloorDiv";
    case Op::kFloorMod:
      return "FloorMod";
    case Op::kPow:
      return "IPow";
    case Op::kAbs:
      return "IAbs";
    case Op::kMin:
      return "IMin";
    case Op::kMax:
    case Op::kRelu:
      return "IMax";
    default:
      return "";  // floor, ceil, round
  }
}

}  // namespace

ReferenceValue ReferenceBody::EmitFresh(NodeId id, const std::vector<std::string>& own) {
  const Node& node = graph_.nodes[id];
  if (node.op == Op::kSoftmax) return EmitSoftmaxElement(id, own);
  if (node.op == Op::kReduce) {
    return scene_.plan.IsKept(id) ? EmitKept(id, own) : EmitInlineReduction(node, own);
  }
  if (node.op == Op::kRead) return EmitRead(node, own);
  if (node.op == Op::kSelect) return EmitSelect(node, own);
  if (node.op == Op::kCast) return EmitCast(node.storage, Emit(node.args[0], own));
  if (node.op >= Op::kEq && node.op <= Op::kGe) return EmitComparison(node, own);
  if (node.op == Op::kAnd || node.op == Op::kOr || node.op == Op::kNot) return EmitLogic(node, own);
  return IsFloat(node.type) ? EmitFloat(node, own) : EmitIntegerOperation(node, own);
}

ReferenceValue ReferenceBody::EmitSelect(const Node& node, const std::vector<std::string>& own) {
  const ReferenceValue c = ConvertTo(DType::kBool, Emit(node.args[0], own));
  const ReferenceValue x = ConvertTo(node.type, Emit(node.args[1], own));
  const ReferenceValue y = ConvertTo(node.type, Emit(node.args[2], own));
  ReferenceValue value = Declare(node.type, absl::StrCat(c.text, " ? ", x.text, " : ", y.text));
  if (IsExact(c) && IsExact(x) && IsExact(y)) return value;
  const std::string ex = ErrorOf(x), ey = ErrorOf(y);
  std::string error = absl::StrCat("(", c.text, " ? ", ex, " : ", ey, ")");
  if (!IsExact(c)) {
    const std::string worst =
        IsFloat(node.type)
            ? absl::StrCat("Worst(", x.text, ", ", ex, ", ", y.text, ", ", ey, ")")
            : absl::StrCat(x.text, " == ", y.text, " ? Any(", ex, ", ", ey, ") : kInf");
    error = absl::StrCat(ErrorOf(c), " > 0 ? (", worst, ") : ", error);
  }
  SetError(value, error);
  return value;
}

ReferenceValue ReferenceBody::EmitComparison(const Node& node,
                                             const std::vector<std::string>& own) {
  ReferenceValue a = Emit(node.args[0], own), b = Emit(node.args[1], own);
  DType common = DType::kBool;
  for (DType type : {DType::kI32, DType::kI64, DType::kF32, DType::kF64}) {
    if (a.type == type || b.type == type) common = type;
  }
  a = ConvertTo(common, a);
  b = ConvertTo(common, b);
  ReferenceValue value =
      Declare(DType::kBool, absl::StrCat(a.text, ComparisonSign(node.op), b.text));
  if (IsExact(a) && IsExact(b)) return value;
  const std::string ea = ErrorOf(a), eb = ErrorOf(b);
  SetError(value, IsFloat(common)
                      ? absl::StrCat("Unsure(", a.text, ", ", ea, ", ", b.text, ", ", eb, ")")
                      : absl::StrCat("Any(", ea, ", ", eb, ")"));
  return value;
}

ReferenceValue ReferenceBody::EmitLogic(const Node& node, const std::vector<std::string>& own) {
  const ReferenceValue a = ConvertTo(DType::kBool, Emit(node.args[0], own));
  if (node.op == Op::kNot) {
    ReferenceValue value = Declare(DType::kBool, absl::StrCat("!", a.text));
    if (!IsExact(a)) SetError(value, ErrorOf(a));
    return value;
  }
  const ReferenceValue b = ConvertTo(DType::kBool, Emit(node.args[1], own));
  const char* sign = node.op == Op::kAnd ? " && " : " || ";
  ReferenceValue value = Declare(DType::kBool, absl::StrCat(a.text, sign, b.text));
  if (!IsExact(a) || !IsExact(b)) {
    SetError(value, absl::StrCat("Any(", ErrorOf(a), ", ", ErrorOf(b), ")"));
  }
  return value;
}

ReferenceValue ReferenceBody::EmitIntegerOperation(const Node& node,
                                                   const std::vector<std::string>& own) {
  const ReferenceValue a = ConvertTo(node.type, Emit(node.args[0], own));
  ReferenceValue b{"0", node.type};
  if (node.args.size() > 1) b = ConvertTo(node.type, Emit(node.args[1], own));
  std::string expression;
  if (subscript_ && (node.op == Op::kAdd || node.op == Op::kSub || node.op == Op::kMul)) {
    const char* sign = node.op == Op::kAdd ? " + " : node.op == Op::kSub ? " - " : " * ";
    expression = absl::StrCat("(", a.text, ")", sign, "(", b.text, ")");
  } else {
    const bool binary = node.args.size() > 1 || node.op == Op::kRelu;
    expression = absl::StrCat(IntegerFunction(node.op), "(", a.text,
                              binary ? absl::StrCat(", ", b.text) : "", ")");
    if (node.type == DType::kI32) expression = absl::StrCat("WrapSigned(", expression, ", 32)");
  }
  ReferenceValue value = Declare(node.type, expression);
  if (!IsExact(a) || !IsExact(b)) {
    SetError(value, absl::StrCat("Any(", ErrorOf(a), ", ", ErrorOf(b), ")"));
  }
  return value;
}

ReferenceValue ReferenceBody::EmitCast(DType storage, const ReferenceValue& value) {
  const DType type = ComputeType(storage);
  if (IsFloat(storage)) {
    const ReferenceValue x = ConvertTo(type, value);
    ReferenceValue result = Declare(type, absl::StrCat(RoundFunction(storage), "(", x.text, ")"));
    if (!IsExact(x)) {
      const Rounding r = rounding(storage);
      const std::string e = ErrorOf(x);
      SetError(result, absl::StrCat(e, " == 0 ? 0.0 : ", e, " + ", Hex(2 * r.unit), " * std::fabs(",
                                    result.text, ") + ", Hex(2 * r.floor)));
    }
    return result;
  }
  const IntegerLimits limits = LimitsOf(storage);
  std::string expression;
  if (storage == DType::kBool) {
    expression = absl::StrCat(value.text, " != 0");
  } else if (IsFloat(value.type)) {
    expression = absl::StrCat("Truncate(", value.text, ", ",
                              storage == DType::kI64 ? "INT64_MIN" : absl::StrCat(limits.least),
                              ", INT64_C(", limits.greatest, "))");
  } else {
    const bool is_unsigned = storage == DType::kU8 || storage == DType::kU4;
    expression = absl::StrCat(is_unsigned ? "WrapUnsigned(" : "WrapSigned(", value.text, ", ",
                              Bits(storage), ")");
  }
  ReferenceValue result = Declare(type, expression);
  if (IsExact(value)) return result;
  const std::string error = ErrorOf(value);
  SetError(result, !IsFloat(value.type) ? error
                   : storage == DType::kBool
                       ? absl::StrCat("Unsure(", value.text, ", ", error, ", 0.0, 0.0)")
                       : absl::StrCat("TruncError(", value.text, ", ", error, ")"));
  return result;
}

ReferenceValue ReferenceBody::EmitFloat(const Node& node, const std::vector<std::string>& own) {
  const DType type = node.type;
  const Rounding r = rounding(type);
  const bool approximate = scene_.policy.approximate;
  const bool tf32 = std::exchange(in_product_, false) && scene_.policy.tf32 && type == DType::kF32;
  const double function = approximate ? kApproximate : kFunctionUnits * r.unit;
  const ReferenceValue a = ConvertTo(type, Emit(node.args[0], own));
  ReferenceValue b{"0.0", type};
  if (node.args.size() > 1) b = ConvertTo(type, Emit(node.args[1], own));
  const bool exact = IsExact(a) && IsExact(b);
  const std::string ea = ErrorOf(a), eb = ErrorOf(b);
  const std::string x = a.text, y = b.text;

  double own_error = r.unit;  // relative, of this operation's own rounding; 0: it is exact
  std::string expression, carried;
  switch (node.op) {
    case Op::kNeg:
      expression = absl::StrCat("-", x), carried = ea, own_error = 0;
      break;
    case Op::kAbs:
      expression = absl::StrCat("std::fabs(", x, ")"), carried = ea, own_error = 0;
      break;
    case Op::kRelu:
      expression = absl::StrCat("Relu(", x, ")"), carried = ea, own_error = 0;
      break;
    case Op::kMin:
    case Op::kMax:
      expression = absl::StrCat(node.op == Op::kMin ? "Min(" : "Max(", x, ", ", y, ")");
      carried = absl::StrCat("Wider(", ea, ", ", eb, ")"), own_error = 0;
      break;
    case Op::kAdd:
    case Op::kSub:
      expression = absl::StrCat(x, node.op == Op::kAdd ? " + " : " - ", y);
      carried = absl::StrCat(ea, " + ", eb);
      break;
    case Op::kMul:
      expression = absl::StrCat(x, " * ", y);
      carried = absl::StrCat("Times(", x, ", ", eb, ") + Times(", y, ", ", ea, ")");
      if (tf32) own_error += 0x1p-10;  // both operands rounded to 11 bits
      break;
    case Op::kDiv:
      expression = absl::StrCat(x, " / ", y);
      if (approximate) own_error = kApproximate;
      break;
    case Op::kMod:
      expression = absl::StrCat("Mod(", x, ", ", y, ")"), own_error = 0;
      break;
    case Op::kPow:
      expression = absl::StrCat("Pow(", x, ", ", y, ")"), own_error = function;
      break;
    default:
      expression = absl::StrCat(FunctionName(node.op, type), "(", x, ")");
      own_error = node.op == Op::kSqrt && !approximate ? r.unit : function;
      if (node.op == Op::kFloor || node.op == Op::kCeil || node.op == Op::kRound) own_error = 0;
  }
  ReferenceValue value = Declare(type, expression);
  const std::string v = value.text;
  if (carried.empty() && !exact) {
    if (node.op == Op::kDiv || node.op == Op::kMod || node.op == Op::kPow) {
      const char* name = node.op == Op::kDiv   ? "DivError"
                         : node.op == Op::kMod ? "ModError"
                                               : "PowError";
      carried = absl::StrCat(name, "(", x, ", ", ea, ", ", y, ", ", eb, ", ", v, ")");
    } else {
      const std::string f = FunctionName(node.op, type);
      carried =
          absl::StrCat("Spread(", v, ", ", f, "(", x, " - ", ea, "), ", f, "(", x, " + ", ea, "))");
    }
  }
  if (exact) {
    if (own_error == 0) return value;
    value.kind = Error::kRelative;
    value.coefficient = own_error;
    return value;
  }
  std::string error = carried;
  if (own_error != 0) {
    absl::StrAppend(&error, " + ", Hex(own_error), " * std::fabs(", v, ") + ", Hex(8 * r.floor));
  }
  SetError(value, absl::StrCat("Bound(", v, ", ", error, ", ", Hex(r.top), ")"));
  return value;
}

}  // namespace kiln::compiler
