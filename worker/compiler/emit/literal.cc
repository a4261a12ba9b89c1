// SPDX-License-Identifier: Apache-2.0
#include "worker/compiler/emit/literal.h"

#include <bit>
#include <cmath>
#include <cstdint>

#include "absl/strings/str_cat.h"

namespace kiln::compiler::emit {

std::string FloatLiteral(DType type, double value) {
  const bool single = type == DType::kF32;
  if (single) value = static_cast<float>(value);
  const absl::string_view suffix = single ? "f" : "";
  const absl::string_view sign = std::signbit(value) ? "-" : "";
  if (std::isnan(value)) return absl::StrCat("__builtin_nan", suffix, "(\"\")");
  if (std::isinf(value)) return absl::StrCat(sign, "__builtin_inf", suffix, "()");
  if (value == 0) return absl::StrCat(sign, "0x0p+0", suffix);
  // printf's %a writes the locale's decimal point, so the digits come from the bits.
  int exponent = 0;
  const double fraction =
      std::frexp(std::fabs(value), &exponent);  // in [0.5, 1), exact for denormals too
  uint64_t mantissa = static_cast<uint64_t>(std::ldexp(fraction, 53));
  const int trailing = std::countr_zero(mantissa);
  mantissa >>= trailing;
  return absl::StrCat(sign, "0x", absl::Hex(mantissa), "p", exponent - 53 + trailing, suffix);
}

}  // namespace kiln::compiler::emit
