// SPDX-License-Identifier: Apache-2.0
#include "proto/contract/language/words.h"

#include <utility>

namespace kiln::language {
namespace {

constexpr std::pair<absl::string_view, Op> kFunctions[] = {
    {"abs", Op::kAbs},     {"exp", Op::kExp},   {"log", Op::kLog},     {"sqrt", Op::kSqrt},
    {"rsqrt", Op::kRsqrt}, {"tanh", Op::kTanh}, {"erf", Op::kErf},     {"sigmoid", Op::kSigmoid},
    {"gelu", Op::kGelu},   {"relu", Op::kRelu}, {"silu", Op::kSilu},   {"floor", Op::kFloor},
    {"ceil", Op::kCeil},   {"sin", Op::kSin},   {"round", Op::kRound}, {"cos", Op::kCos}};

constexpr std::pair<absl::string_view, ReduceOp> kReductions[] = {
    {"sum", ReduceOp::kSum},       {"prod", ReduceOp::kProd}, {"max", ReduceOp::kMax},
    {"min", ReduceOp::kMin},       {"avg", ReduceOp::kAvg},   {"argmax", ReduceOp::kArgmax},
    {"argmin", ReduceOp::kArgmin}, {"any", ReduceOp::kAny},   {"all", ReduceOp::kAll}};

constexpr std::pair<Op, absl::string_view> kSigns[] = {
    {Op::kAdd, "+"},      {Op::kSub, "-"}, {Op::kMul, "*"}, {Op::kDiv, "/"}, {Op::kMod, "%"},
    {Op::kFloorDiv, "/"}, {Op::kPow, "^"}, {Op::kEq, "=="}, {Op::kNe, "!="}, {Op::kLt, "<"},
    {Op::kFloorMod, "%"}, {Op::kLe, "<="}, {Op::kGt, ">"},  {Op::kGe, ">="}, {Op::kAnd, "&&"},
    {Op::kOr, "||"},      {Op::kNeg, "-"}, {Op::kNot, "!"}};

constexpr absl::string_view kKeywords[] = {"operator", "input",  "constant", "output",
                                           "in",       "over",   "else",     "inf",
                                           "nan",      "select", "cast",     "softmax"};

constexpr absl::string_view kPrefix =
    "there are no loops and no recurrences; a prefix sum is y[i] = sum(j in 0..i+1: x[j])";
constexpr absl::string_view kSort =
    "there is no sorting and no top-k; the largest is max(...), its place argmax(...)";
constexpr absl::string_view kRandom =
    "there are no random numbers; pass the mask or the noise as an input";
constexpr absl::string_view kShape =
    "shapes do not depend on data; pad to the largest size and pass the lengths as an input";
constexpr absl::string_view kScatter =
    "there is no scatter; turn it round: h[v] = sum(ids[t] == v ? w[t] : 0)";
constexpr absl::string_view kGather = "a gather is a read with a computed subscript: x[col[e]]";
constexpr absl::string_view kSelect = "write c ? a : b, or select(c, a, b)";

constexpr std::pair<absl::string_view, absl::string_view> kForeign[] = {
    {"for", kPrefix},
    {"while", kPrefix},
    {"scan", kPrefix},
    {"cumsum", kPrefix},
    {"cumprod", kPrefix},
    {"prefix", kPrefix},
    {"sort", kSort},
    {"argsort", kSort},
    {"topk", kSort},
    {"top_k", kSort},
    {"rand", kRandom},
    {"random", kRandom},
    {"randn", kRandom},
    {"dropout", kRandom},
    {"uniform", kRandom},
    {"normal", kRandom},
    {"bernoulli", kRandom},
    {"nonzero", kShape},
    {"unique", kShape},
    {"scatter", kScatter},
    {"scatter_add", kScatter},
    {"histogram", kScatter},
    {"bincount", kScatter},
    {"gather", kGather},
    {"where", kSelect},
    {"if", kSelect},
    {"iif", kSelect},
    {"mean", "write avg(...)"},
    {"pow", "write a ^ b"},
    {"maximum", "write max(a, b)"},
    {"minimum", "write min(a, b)"},
    {"fabs", "write abs(x)"},
    {"swish", "write silu(x)"},
    {"product", "write prod(...)"},
    {"clamp", "write min(max(x, lo), hi)"},
    {"clip", "write min(max(x, lo), hi)"},
    {"logsumexp", "write log(sum(exp(x)))"},
    {"fma", "write a * b + c"},
    {"tan", "write sin(x) / cos(x)"},
    {"xor", "there are no bit operations; of bools, a != b is the exclusive or"},
    {"return", "assign the output: y = ..."},
    {"let", "write name = ...; without let"},
    {"var", "write name = ...; without var"},
    {"float", "types are f32, f16, ...: t : f32 = ..."}};

}  // namespace

std::optional<Op> FindFunction(absl::string_view word) {
  for (const auto& [name, op] : kFunctions) {
    if (name == word) return op;
  }
  return std::nullopt;
}

std::optional<ReduceOp> FindReduction(absl::string_view word) {
  for (const auto& [name, op] : kReductions) {
    if (name == word) return op;
  }
  return std::nullopt;
}

absl::string_view FunctionName(Op op) {
  if (op == Op::kMin) return "min";
  if (op == Op::kMax) return "max";
  for (const auto& [name, function] : kFunctions) {
    if (function == op) return name;
  }
  return "";
}

absl::string_view ReductionName(ReduceOp op) {
  for (const auto& [name, reduction] : kReductions) {
    if (reduction == op) return name;
  }
  return "";
}

absl::string_view OperatorSign(Op op) {
  for (const auto& [of, sign] : kSigns) {
    if (of == op) return sign;
  }
  return "";
}

bool IsReserved(absl::string_view word) {
  for (absl::string_view keyword : kKeywords) {
    if (keyword == word) return true;
  }
  return FindFunction(word).has_value() || FindReduction(word).has_value();
}

absl::string_view ForeignHint(absl::string_view word) {
  for (const auto& [name, hint] : kForeign) {
    if (name == word) return hint;
  }
  return "";
}

}  // namespace kiln::language
