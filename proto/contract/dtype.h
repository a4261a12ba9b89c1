// SPDX-License-Identifier: Apache-2.0
// Storage types of tensors and what expressions over them compute in (LANGUAGE.md section 5).
// Plain values, thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"

namespace kiln {

enum class DType : uint8_t {
  kF64,
  kF32,
  kF16,
  kBf16,
  kE4m3,
  kE5m2,
  kI64,
  kI32,
  kI16,
  kI8,
  kU8,
  kI4,
  kU4,
  kBool
};

// "f32", "bool", ...; Parse returns nothing for any other word.
absl::string_view Print(DType type);
std::optional<DType> ParseDType(absl::string_view word);
std::string AllDTypes();  // "f64 f32 ...", for error texts

int Bits(DType type);  // 4 for i4 and u4
bool IsFloat(DType type);
bool IsInteger(DType type);  // false for bool

// Bytes that `elements` packed elements take (two i4/u4 a byte, rounded up).
int64_t BytesOf(DType type, int64_t elements);

// The type that an expression over a value of this storage type computes in: f32, f64, i32, i64 or
// bool.
DType ComputeType(DType type);

// The type that a sum over values of this (storage or compute) type accumulates in by default.
DType AccumulatorOf(DType type);

}  // namespace kiln
