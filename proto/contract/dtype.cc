// SPDX-License-Identifier: Apache-2.0
#include "proto/contract/dtype.h"

#include <iterator>

#include "absl/strings/str_cat.h"

namespace kiln {
namespace {

enum class Sort : uint8_t { kFloat, kInteger, kBool };

struct Facts {
  absl::string_view word;
  int bits;
  Sort sort;
  DType compute, accumulator;
};

// In the order of the enumeration.
constexpr Facts kFacts[] = {
    {"f64", 64, Sort::kFloat, DType::kF64, DType::kF64},
    {"f32", 32, Sort::kFloat, DType::kF32, DType::kF32},
    {"f16", 16, Sort::kFloat, DType::kF32, DType::kF32},
    {"bf16", 16, Sort::kFloat, DType::kF32, DType::kF32},
    {"e4m3", 8, Sort::kFloat, DType::kF32, DType::kF32},
    {"e5m2", 8, Sort::kFloat, DType::kF32, DType::kF32},
    {"i64", 64, Sort::kInteger, DType::kI64, DType::kI64},
    {"i32", 32, Sort::kInteger, DType::kI32, DType::kI32},
    {"i16", 16, Sort::kInteger, DType::kI32, DType::kI32},
    {"i8", 8, Sort::kInteger, DType::kI32, DType::kI32},
    {"u8", 8, Sort::kInteger, DType::kI32, DType::kI32},
    {"i4", 4, Sort::kInteger, DType::kI32, DType::kI32},
    {"u4", 4, Sort::kInteger, DType::kI32, DType::kI32},
    {"bool", 8, Sort::kBool, DType::kBool, DType::kI32},
};

const Facts& FactsOf(DType type) { return kFacts[static_cast<int>(type)]; }

}  // namespace

absl::string_view Print(DType type) { return FactsOf(type).word; }

std::optional<DType> ParseDType(absl::string_view word) {
  for (size_t i = 0; i < std::size(kFacts); ++i) {
    if (kFacts[i].word == word) return static_cast<DType>(i);
  }
  return std::nullopt;
}

std::string AllDTypes() {
  std::string all;
  for (const Facts& facts : kFacts) absl::StrAppend(&all, all.empty() ? "" : " ", facts.word);
  return all;
}

int Bits(DType type) { return FactsOf(type).bits; }
bool IsFloat(DType type) { return FactsOf(type).sort == Sort::kFloat; }
bool IsInteger(DType type) { return FactsOf(type).sort == Sort::kInteger; }

int64_t BytesOf(DType type, int64_t elements) {
  return Bits(type) == 4 ? elements / 2 + elements % 2 : elements * (Bits(type) / 8);
}

DType ComputeType(DType type) { return FactsOf(type).compute; }
DType AccumulatorOf(DType type) { return FactsOf(type).accumulator; }

}  // namespace kiln
