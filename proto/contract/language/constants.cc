// SPDX-License-Identifier: Apache-2.0
// Operations on literals alone are done in f64. Only those are folded whose result IEEE 754 fixes,
// so that canonical texts do not depend on a mathematical library: exp(1) stays an operation.
#include <algorithm>
#include <cmath>

#include "proto/contract/language/infer.h"

namespace kiln::language {
namespace {

Constant Bool(bool value) { return {value ? 1.0 : 0.0, value ? 1 : 0, true}; }

// IEEE 754-2019 maximum: NaN wins, -0 < +0.
double Maximum(double a, double b) {
  if (std::isnan(a) || std::isnan(b)) return std::nan("");
  if (a == b) return std::signbit(a) ? b : a;
  return a < b ? b : a;
}

// A product for whole exponents 0..4; other powers are not exact everywhere.
std::optional<Constant> FoldPower(double base, double exponent) {
  if (exponent != std::trunc(exponent) || exponent < 0 || exponent > 4) return std::nullopt;
  double product = 1, square = base * base;
  if (exponent == 1) product = base;
  if (exponent == 2) product = square;
  if (exponent == 3) product = square * base;
  if (exponent == 4) product = square * square;
  return Constant{product, std::nullopt, false};
}

}  // namespace

bool IsWhole(const Constant& constant) {
  return constant.exact ||
         (std::isfinite(constant.value) && constant.value == std::trunc(constant.value));
}

std::optional<int64_t> AsInteger(const Constant& constant, int bits) {
  constexpr double kTwo63 = 9223372036854775808.0;
  int64_t value = 0;
  if (constant.exact) {
    value = *constant.exact;
  } else if (IsWhole(constant) && constant.value >= -kTwo63 && constant.value < kTwo63) {
    value = static_cast<int64_t>(constant.value);
  } else {
    return std::nullopt;
  }
  if (bits < 64 && (value < -(int64_t{1} << (bits - 1)) || value >= int64_t{1} << (bits - 1)))
    return std::nullopt;
  return value;
}

std::optional<Constant> FoldUnary(Op op, const Constant& a) {
  switch (op) {
    case Op::kNeg: {
      Constant negated{-a.value, std::nullopt, false};
      if (a.exact && *a.exact != INT64_MIN) negated.exact = -*a.exact;
      return negated;
    }
    case Op::kNot:
      return Bool(a.value == 0);
    case Op::kAbs:
      return Constant{std::fabs(a.value), std::nullopt, false};
    case Op::kSqrt:
      return Constant{std::sqrt(a.value), std::nullopt, false};
    case Op::kRelu:
      return Constant{Maximum(a.value, 0), std::nullopt, false};
    case Op::kFloor:
      return Constant{std::floor(a.value), std::nullopt, false};
    case Op::kCeil:
      return Constant{std::ceil(a.value), std::nullopt, false};
    case Op::kRound: {
      // Half to even whatever the rounding mode of the process: the remainder to the nearest even
      // integer is exact.
      double rest = std::isfinite(a.value) ? std::remainder(a.value, 1.0) : 0;
      return Constant{std::copysign(a.value - rest, a.value), std::nullopt, false};
    }
    default:
      return std::nullopt;
  }
}

std::optional<Constant> FoldBinary(Op op, const Constant& a, const Constant& b) {
  double x = a.value, y = b.value;
  auto number = [](double value) { return Constant{value, std::nullopt, false}; };
  switch (op) {
    case Op::kAdd:
      return number(x + y);
    case Op::kSub:
      return number(x - y);
    case Op::kMul:
      return number(x * y);
    case Op::kDiv:
      return number(x / y);
    case Op::kMod:
      return number(std::fmod(x, y));
    case Op::kPow:
      return FoldPower(x, y);
    case Op::kMax:
      return number(Maximum(x, y));
    case Op::kMin:
      return number(-Maximum(-x, -y));
    case Op::kEq:
      return Bool(x == y);
    case Op::kNe:
      return Bool(x != y);
    case Op::kLt:
      return Bool(x < y);
    case Op::kLe:
      return Bool(x <= y);
    case Op::kGt:
      return Bool(x > y);
    case Op::kGe:
      return Bool(x >= y);
    case Op::kAnd:
      return Bool(x != 0 && y != 0);
    case Op::kOr:
      return Bool(x != 0 || y != 0);
    default:
      return std::nullopt;
  }
}

}  // namespace kiln::language
