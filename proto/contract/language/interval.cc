// SPDX-License-Identifier: Apache-2.0
// Saturating interval arithmetic. An end at +-kUnknown means "no bound known on this side", and
// stays that.
#include <algorithm>

#include "proto/contract/language/affine.h"

namespace kiln::language {
namespace {

using Wide = __int128;

int64_t Saturate(Wide value) {
  if (value >= kUnknown) return kUnknown;
  if (value <= -kUnknown) return -kUnknown;
  return static_cast<int64_t>(value);
}

int64_t FloorDiv(int64_t a, int64_t b) { return a / b - (a % b < 0 ? 1 : 0); }

// An unknown end divided stays unknown: what lies behind it has no limit.
int64_t DivEnd(int64_t a, int64_t b) {
  return a >= kUnknown || a <= -kUnknown ? a : FloorDiv(a, b);
}

}  // namespace

Interval AddIntervals(Interval a, Interval b) {
  auto add = [](int64_t x, int64_t y, int64_t unknown) {
    if (x == unknown || y == unknown) return unknown;
    return Saturate(static_cast<Wide>(x) + y);
  };
  return {add(a.lo, b.lo, -kUnknown), add(a.hi, b.hi, kUnknown)};
}

Interval NegInterval(Interval a) { return {-a.hi, -a.lo}; }

Interval MulIntervals(Interval a, Interval b) {
  Wide products[] = {static_cast<Wide>(a.lo) * b.lo, static_cast<Wide>(a.lo) * b.hi,
                     static_cast<Wide>(a.hi) * b.lo, static_cast<Wide>(a.hi) * b.hi};
  auto [lo, hi] = std::minmax_element(std::begin(products), std::end(products));
  return {Saturate(*lo), Saturate(*hi)};
}

Interval DivIntervals(Interval a, Interval b) {
  b.lo = std::max<int64_t>(b.lo, 1);
  b.hi = std::max(b.hi, b.lo);
  int64_t ends[] = {DivEnd(a.lo, b.lo), DivEnd(a.lo, b.hi), DivEnd(a.hi, b.lo), DivEnd(a.hi, b.hi)};
  auto [lo, hi] = std::minmax_element(std::begin(ends), std::end(ends));
  return {*lo, *hi};
}

Interval ModIntervals(Interval a, Interval b) {
  b.lo = std::max<int64_t>(b.lo, 1);
  b.hi = std::max(b.hi, b.lo);
  if (a.lo >= 0 && a.hi < b.lo) return a;
  return {0, a.lo >= 0 ? std::min(a.hi, b.hi - 1) : b.hi - 1};
}

Interval RangeOfType(DType type) {
  switch (type) {
    case DType::kI32:
      return {INT32_MIN, INT32_MAX};
    case DType::kI16:
      return {INT16_MIN, INT16_MAX};
    case DType::kI8:
      return {INT8_MIN, INT8_MAX};
    case DType::kU8:
      return {0, UINT8_MAX};
    case DType::kI4:
      return {-8, 7};
    case DType::kU4:
      return {0, 15};
    case DType::kBool:
      return {0, 1};
    default:
      return kAnything;
  }
}

}  // namespace kiln::language
