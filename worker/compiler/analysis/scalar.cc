// SPDX-License-Identifier: Apache-2.0
#include "worker/compiler/analysis/scalar.h"

#include <cmath>

#include "worker/compiler/analysis/host_tensor.h"

namespace kiln::compiler {
namespace {

// What both sides of a comparison are seen in.
DType CommonType(DType a, DType b) {
  for (DType type : {DType::kF64, DType::kF32, DType::kI64, DType::kI32}) {
    if (a == type || b == type) return type;
  }
  return DType::kBool;
}

// Integer operations wrap; they are done in unsigned 64 bits, whose low bits are those of any
// narrower type.
int64_t IntegerPower(int64_t base, int64_t exponent) {
  if (exponent < 0) {
    if (base == 1) return 1;
    if (base == -1) return exponent % 2 == 0 ? 1 : -1;
    return 0;
  }
  uint64_t result = 1, factor = static_cast<uint64_t>(base);
  for (; exponent != 0; exponent >>= 1) {
    if (exponent & 1) result *= factor;
    factor *= factor;
  }
  return static_cast<int64_t>(result);
}

int64_t TruncatingQuotient(int64_t a, int64_t b) {
  if (b == 0) return 0;
  return b == -1 ? static_cast<int64_t>(0 - static_cast<uint64_t>(a)) : a / b;
}

int64_t FloorQuotient(int64_t a, int64_t b) {
  if (b == 0) return 0;
  const int64_t quotient = TruncatingQuotient(a, b);
  return b != -1 && a % b != 0 && (a < 0) != (b < 0) ? quotient - 1 : quotient;
}

int64_t IntegerOperation(Op op, int64_t a, int64_t b) {
  const uint64_t x = static_cast<uint64_t>(a), y = static_cast<uint64_t>(b);
  switch (op) {
    case Op::kNeg:
      return static_cast<int64_t>(0 - x);
    case Op::kAdd:
      return static_cast<int64_t>(x + y);
    case Op::kSub:
      return static_cast<int64_t>(x - y);
    case Op::kMul:
      return static_cast<int64_t>(x * y);
    case Op::kDiv:
      return TruncatingQuotient(a, b);
    case Op::kMod:
      return b == 0 || b == -1 ? 0 : a % b;
    case Op::kFloorDiv:
      return FloorQuotient(a, b);
    case Op::kFloorMod:
      return b == 0 ? 0 : static_cast<int64_t>(x - static_cast<uint64_t>(FloorQuotient(a, b)) * y);
    case Op::kPow:
      return IntegerPower(a, b);
    case Op::kAbs:
      return a < 0 ? static_cast<int64_t>(0 - x) : a;
    case Op::kMin:
      return a < b ? a : b;
    case Op::kMax:
      return a > b ? a : b;
    case Op::kRelu:
      return a > 0 ? a : 0;
    default:  // floor, ceil, round
      return a;
  }
}

// Compositions are done wider than f64, so that they are exact to its last digit: erfc's argument
// would lose digits that its result needs, and e^-x leave the range before its reciprocal does.
using Wide = long double;
constexpr Wide kRootHalf = 0.70710678118654752440084436210484903929L;

double Power(double base, double exponent) {
  if (exponent != std::trunc(exponent) || exponent < 0 || exponent > 4) {
    return std::pow(base, exponent);
  }
  double product = 1;
  for (int i = 0; i < static_cast<int>(exponent); ++i) product *= base;
  return product;
}

double FloatOperation(Op op, double a, double b) {
  switch (op) {
    case Op::kNeg:
      return -a;
    case Op::kAdd:
      return a + b;
    case Op::kSub:
      return a - b;
    case Op::kMul:
      return a * b;
    case Op::kDiv:
      return a / b;
    case Op::kMod:
      return std::fmod(a, b);
    case Op::kPow:
      return Power(a, b);
    case Op::kAbs:
      return std::fabs(a);
    case Op::kExp:
      return std::exp(a);
    case Op::kLog:
      return std::log(a);
    case Op::kSqrt:
      return std::sqrt(a);
    case Op::kRsqrt:
      return 1 / std::sqrt(a);
    case Op::kTanh:
      return std::tanh(a);
    case Op::kSigmoid:
      return static_cast<double>(1 / (1 + std::exp(-Wide{a})));
    case Op::kErf:
      return std::erf(a);
    case Op::kGelu:  // 0.5 * (1 + erf(t)) without its cancellation
      return static_cast<double>(a * (0.5L * std::erfc(-a * kRootHalf)));
    case Op::kRelu:
      return Maximum(a, 0);
    case Op::kSilu:
      return static_cast<double>(a / (1 + std::exp(-Wide{a})));
    case Op::kFloor:
      return std::floor(a);
    case Op::kCeil:
      return std::ceil(a);
    case Op::kRound:
      return std::nearbyint(a);
    case Op::kSin:
      return std::sin(a);
    case Op::kCos:
      return std::cos(a);
    case Op::kMin:
      return Minimum(a, b);
    case Op::kMax:
      return Maximum(a, b);
    default:
      return std::nan("");
  }
}

template <typename T>
bool Compare(Op op, T a, T b) {
  switch (op) {
    case Op::kEq:
      return a == b;
    case Op::kNe:
      return a != b;
    case Op::kLt:
      return a < b;
    case Op::kLe:
      return a <= b;
    case Op::kGt:
      return a > b;
    default:
      return a >= b;
  }
}

bool IsComparison(Op op) { return op >= Op::kEq && op <= Op::kGe; }

}  // namespace

double Maximum(double a, double b) {
  if (std::isnan(a) || std::isnan(b)) return std::nan("");
  if (a == b) return std::signbit(a) ? b : a;
  return a > b ? a : b;
}

double Minimum(double a, double b) {
  if (std::isnan(a) || std::isnan(b)) return std::nan("");
  if (a == b) return std::signbit(a) ? a : b;
  return a < b ? a : b;
}

Scalar FloatScalar(DType type, double number, Arithmetic arithmetic) {
  const bool round = type == DType::kF32 && arithmetic == Arithmetic::kAsSpecified;
  return {type, round ? static_cast<double>(static_cast<float>(number)) : number, 0};
}

Scalar IntegerScalar(DType type, int64_t integer) { return {type, 0, WrapTo(type, integer)}; }

Scalar ConvertTo(DType type, const Scalar& value, Arithmetic arithmetic) {
  if (value.type == type) return value;
  if (IsFloat(type)) {
    if (IsFloat(value.type)) return FloatScalar(type, value.number, arithmetic);
    if (type == DType::kF32 && arithmetic == Arithmetic::kAsSpecified) {
      return {type, static_cast<float>(value.integer), 0};  // rounds once
    }
    return {type, static_cast<double>(value.integer), 0};
  }
  if (IsFloat(value.type)) return {type, 0, TruncateTo(type, value.number)};
  return IntegerScalar(type, value.integer);
}

Scalar CastTo(DType storage, const Scalar& value, Arithmetic arithmetic) {
  HostTensor one{storage, {}, {}, std::vector<uint8_t>(8)};
  if (IsFloat(value.type)) {
    StoreDouble(one, 0, value.number);
  } else {
    StoreInteger(one, 0, value.integer);
  }
  const DType type = ComputeType(storage);
  if (IsFloat(type)) return FloatScalar(type, LoadAsDouble(one, 0), arithmetic);
  return IntegerScalar(type, LoadAsInteger(one, 0));
}

Scalar ApplyElementwise(const Node& node, const std::vector<Scalar>& arguments,
                        Arithmetic arithmetic) {
  if (node.op == Op::kCast) return CastTo(node.storage, arguments[0], arithmetic);
  if (node.op == Op::kNot) return {DType::kBool, 0, arguments[0].integer == 0};
  if (IsComparison(node.op)) {
    const DType type = CommonType(arguments[0].type, arguments[1].type);
    const Scalar a = ConvertTo(type, arguments[0], arithmetic);
    const Scalar b = ConvertTo(type, arguments[1], arithmetic);
    return {DType::kBool, 0,
            IsFloat(type) ? Compare(node.op, a.number, b.number)
                          : Compare(node.op, a.integer, b.integer)};
  }
  const Scalar a = ConvertTo(node.type, arguments[0], arithmetic);
  const Scalar b = arguments.size() > 1 ? ConvertTo(node.type, arguments[1], arithmetic) : Scalar{};
  if (IsFloat(node.type)) {
    return FloatScalar(node.type, FloatOperation(node.op, a.number, b.number), arithmetic);
  }
  return IntegerScalar(node.type, IntegerOperation(node.op, a.integer, b.integer));
}

}  // namespace kiln::compiler
