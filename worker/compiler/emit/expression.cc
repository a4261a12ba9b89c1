// SPDX-License-Identifier: Apache-2.0
#include "worker/compiler/emit/expression.h"

#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "worker/compiler/emit/literal.h"

namespace kiln::compiler::emit {
namespace {

using tile::Expression;

// T is the type and F the suffix of its C library functions.
const std::map<std::string, std::string>& Definitions() {
  static const auto* definitions = new std::map<std::string, std::string>{
      // IEEE 754-2019 maximum and minimum: NaN wins, -0 < +0.
      {"maximum",
       "static inline T maximum(T a, T b) {\n"
       "  const T equal = __builtin_signbit(a) ? b : a;\n"
       "  return a > b ? a : b > a ? b : a == b ? equal : a + b;\n}\n"},
      {"minimum",
       "static inline T minimum(T a, T b) {\n"
       "  const T equal = __builtin_signbit(a) ? a : b;\n"
       "  return a < b ? a : b < a ? b : a == b ? equal : a + b;\n}\n"},
      {"relu", "static inline T relu(T x) { return x > 0 ? x : x != x ? x : 0; }\n"},
      // Never exponentiates a positive number: no overflow, and tiny results keep their digits.
      {"sigmoid",
       "static inline T sigmoid(T x) {\n"
       "  const T e = __builtin_expF(-__builtin_fabsF(x));\n"
       "  return (x >= 0 ? 1 : x != x ? x : e) / (1 + e);\n}\n"},
      // e^x is denormal, and has lost digits, before x * e^x is: so that far down it comes in two
      // halves.
      {"silu",
       "static inline T silu(T x) {\n"
       "  if (x < -80) {\n"
       "    const T half = __builtin_expF(x / 2);\n"
       "    return x * half * half;\n"
       "  }\n"
       "  return x * sigmoid(x);\n}\n"},
  };
  return *definitions;
}

// The erf form through erfc, which keeps its digits for negative x, one type wider: the rounding of
// x / sqrt(2) would be amplified by x^2.
std::string GeluText(DType type) {
  if (type == DType::kF32) {
    return "static inline float gelu(float x) {\n"
           "  return (float)(0.5 * x * __builtin_erfc(x * -0x1.6a09e667f3bcdp-1));\n}\n";
  }
  return "static inline double gelu(double x) {\n"
         "  return (double)(0.5L * x * __builtin_erfcl(x * "
         "-0.70710678118654752440084436210484903929L));\n}\n";
}

class Printer {
 public:
  Printer(const Expression& expression, DType type, std::set<std::string>* needs)
      : expression_(expression), type_(type), needs_(needs) {}

  std::string Value(size_t i) {
    const Expression::Node& node = expression_.nodes[i];
    switch (node.source) {
      case Expression::Source::kAccumulator:
        return "acc";
      case Expression::Source::kOperand:
        return absl::StrCat("x", node.operand);
      case Expression::Source::kLiteral:
        if (IsFloat(node.type)) return FloatLiteral(type_, node.number);
        return node.type == DType::kBool ? (node.integer != 0 ? "true" : "false")
                                         : absl::StrCat(node.integer);
      case Expression::Source::kOperation:
        return absl::StrCat("t", i);
    }
    return "";
  }

  std::string Operation(const Expression::Node& node) {
    auto arg = [&](int i) { return Value(static_cast<size_t>(node.args[i])); };
    auto infix = [&](absl::string_view op) { return absl::StrCat(arg(0), " ", op, " ", arg(1)); };
    const absl::string_view f = type_ == DType::kF32 ? "f" : "";
    auto builtin = [&](absl::string_view name) {
      return absl::StrCat("__builtin_", name, f, "(", arg(0), ")");
    };
    auto own = [&](const std::string& name) {
      needs_->insert(name);
      return absl::StrCat(name, "(", arg(0), node.args.size() > 1 ? absl::StrCat(", ", arg(1)) : "",
                          ")");
    };
    switch (node.op) {
      case Op::kNeg:
        return absl::StrCat("-(", arg(0), ")");
      case Op::kNot:
        return absl::StrCat("!", arg(0));
      case Op::kAdd:
        return infix("+");
      case Op::kSub:
        return infix("-");
      case Op::kMul:
        return infix("*");
      case Op::kDiv:
        return infix("/");
      case Op::kMod:
        return absl::StrCat("__builtin_fmod", f, "(", arg(0), ", ", arg(1), ")");
      case Op::kPow:
        return Power(node);
      case Op::kEq:
        return infix("==");
      case Op::kNe:
        return infix("!=");
      case Op::kLt:
        return infix("<");
      case Op::kLe:
        return infix("<=");
      case Op::kGt:
        return infix(">");
      case Op::kGe:
        return infix(">=");
      case Op::kAnd:
        return infix("&");
      case Op::kOr:
        return infix("|");
      case Op::kSelect:
        return absl::StrCat(arg(0), " ? ", arg(1), " : ", arg(2));
      case Op::kCast:
        return absl::StrCat("(", type_ == DType::kF32 ? "float" : "double", ")", arg(0));
      case Op::kAbs:
        return builtin("fabs");
      case Op::kExp:
        return builtin("exp");
      case Op::kLog:
        return builtin("log");
      case Op::kSqrt:
        return builtin("sqrt");
      case Op::kRsqrt:
        return absl::StrCat("1 / ", builtin("sqrt"));
      case Op::kTanh:
        return builtin("tanh");
      case Op::kErf:
        return builtin("erf");
      case Op::kFloor:
        return builtin("floor");
      case Op::kCeil:
        return builtin("ceil");
      case Op::kRound:
        return builtin("rint");
      case Op::kSin:
        return builtin("sin");
      case Op::kCos:
        return builtin("cos");
      case Op::kSigmoid:
        return own("sigmoid");
      case Op::kGelu:
        return own("gelu");
      case Op::kRelu:
        return own("relu");
      case Op::kSilu:
        needs_->insert("sigmoid");
        return own("silu");
      case Op::kMin:
        return own("minimum");
      case Op::kMax:
        return own("maximum");
      default:
        return "";  // kept out by Supports
    }
  }

 private:
  // LANGUAGE.md: a product for literal integer exponents up to 4, else pow.
  std::string Power(const Expression::Node& node) {
    const Expression::Node& exponent = expression_.nodes[static_cast<size_t>(node.args[1])];
    const std::string x = Value(static_cast<size_t>(node.args[0]));
    if (exponent.source == Expression::Source::kLiteral) {
      const double e =
          IsFloat(exponent.type) ? exponent.number : static_cast<double>(exponent.integer);
      if (e == 1) return x;
      if (e == 2) return absl::StrCat(x, " * ", x);
      if (e == 3) return absl::StrCat(x, " * ", x, " * ", x);
      if (e == 4) return absl::StrCat("(", x, " * ", x, ") * (", x, " * ", x, ")");
    }
    std::string y = Value(static_cast<size_t>(node.args[1]));
    return absl::StrCat("__builtin_pow", type_ == DType::kF32 ? "f" : "", "(", x, ", ", y, ")");
  }

  const Expression& expression_;
  const DType type_;
  std::set<std::string>* needs_;
};

std::string TypeName(DType type) {
  return type == DType::kF32    ? "float"
         : type == DType::kF64  ? "double"
         : type == DType::kBool ? "bool"
                                : "int";
}

}  // namespace

std::string ExpressionFunction(const Expression& expression, DType type, const std::string& name,
                               int operands, std::set<std::string>* needs) {
  const std::string real = TypeName(type);
  std::string text = absl::StrCat("static inline ", real, " ", name, "(", real, " acc");
  for (int x = 0; x < operands; ++x) absl::StrAppend(&text, ", ", real, " x", x);
  absl::StrAppend(&text, ") {\n");
  Printer printer(expression, type, needs);
  for (size_t i = 0; i < expression.nodes.size(); ++i) {
    const Expression::Node& node = expression.nodes[i];
    if (node.source != Expression::Source::kOperation) continue;
    absl::StrAppend(&text, "  const ", TypeName(node.type), " t", i, " = ", printer.Operation(node),
                    ";\n");
  }
  const std::string result =
      expression.nodes.empty() ? "acc" : printer.Value(expression.nodes.size() - 1);
  return absl::StrCat(text, "  return ", result, ";\n}\n\n");
}

std::string FunctionText(const std::set<std::string>& needs, DType type) {
  std::string text;
  for (const std::string& name : needs) {
    if (name == "gelu") {
      text += GeluText(type);
      continue;
    }
    const bool single = type == DType::kF32;
    std::string body = Definitions().at(name);
    body = absl::StrReplaceAll(body,
                               {{"__builtin_expF", single ? "__builtin_expf" : "__builtin_exp"},
                                {"__builtin_fabsF", single ? "__builtin_fabsf" : "__builtin_fabs"},
                                {"T ", single ? "float " : "double "}});
    text += body;
  }
  return text.empty() ? text : text + "\n";
}

}  // namespace kiln::compiler::emit
