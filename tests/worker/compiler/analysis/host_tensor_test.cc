// SPDX-License-Identifier: Apache-2.0
#include "worker/compiler/analysis/host_tensor.h"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

namespace kiln::compiler {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

HostTensor One(DType type) { return {type, {1}, {1}, std::vector<uint8_t>(8)}; }

uint32_t CodeOf(DType type, double value) {
  HostTensor one = One(type);
  StoreDouble(one, 0, value);
  return Bits(type) == 16 ? one.bytes[0] | one.bytes[1] << 8 : one.bytes[0];
}

double ValueOf(DType type, uint32_t code) {
  HostTensor one = One(type);
  one.bytes[0] = static_cast<uint8_t>(code);
  one.bytes[1] = static_cast<uint8_t>(code >> 8);
  return LoadAsDouble(one, 0);
}

// Every code of the type comes back, and everything between two neighbours goes to the nearer, ties
// to the even one.
void CheckAllCodes(DType type) {
  const uint32_t half = 1u << (Bits(type) - 1);
  for (uint32_t code = 0; code < 2 * half; ++code) {
    const double value = ValueOf(type, code);
    if (std::isnan(value)) {
      EXPECT_TRUE(std::isnan(RoundTo(type, value)));
      continue;
    }
    if (!(type == DType::kE4m3 && std::isinf(value))) {
      EXPECT_EQ(CodeOf(type, value), code);
    }
  }
  for (uint32_t code = 0; code + 1 < half; ++code) {
    const double low = ValueOf(type, code), high = ValueOf(type, code + 1);
    if (!std::isfinite(low) || !std::isfinite(high)) continue;
    const double middle = (low + high) / 2;
    EXPECT_EQ(CodeOf(type, middle), code % 2 == 0 ? code : code + 1) << low;
    EXPECT_EQ(CodeOf(type, std::nextafter(middle, low)), code);
    EXPECT_EQ(CodeOf(type, std::nextafter(middle, high)), code + 1);
    EXPECT_EQ(CodeOf(type, -std::nextafter(middle, high)), (code + 1) | half);
  }
}

TEST(HostTensor, RoundsToEveryHalfAndEighth) {
  for (DType type : {DType::kF16, DType::kBf16, DType::kE4m3, DType::kE5m2}) {
    SCOPED_TRACE(std::string(Print(type)));
    CheckAllCodes(type);
  }
}

TEST(HostTensor, KnowsPublishedCodes) {
  EXPECT_EQ(CodeOf(DType::kF16, 1), 0x3C00u);
  EXPECT_EQ(CodeOf(DType::kF16, 65504), 0x7BFFu);
  EXPECT_EQ(CodeOf(DType::kF16, 0x1p-24), 1u);
  EXPECT_EQ(CodeOf(DType::kBf16, 1), 0x3F80u);
  EXPECT_EQ(CodeOf(DType::kBf16, -2), 0xC000u);
  EXPECT_EQ(CodeOf(DType::kE4m3, 448), 0x7Eu);
  EXPECT_EQ(CodeOf(DType::kE4m3, 1), 0x38u);
  EXPECT_EQ(CodeOf(DType::kE4m3, 0x1p-9), 1u);
  EXPECT_EQ(CodeOf(DType::kE5m2, 57344), 0x7Bu);
  EXPECT_EQ(CodeOf(DType::kE5m2, 1), 0x3Cu);
}

TEST(HostTensor, OverflowsAsTheTypeSays) {
  EXPECT_EQ(RoundTo(DType::kF16, 65519.99), 65504);
  EXPECT_EQ(RoundTo(DType::kF16, 65520), kInfinity);
  EXPECT_EQ(RoundTo(DType::kBf16, 3.4e38), kInfinity);
  EXPECT_EQ(RoundTo(DType::kE4m3, 1e9), 448);
  EXPECT_EQ(RoundTo(DType::kE4m3, -kInfinity), -448);
  EXPECT_TRUE(std::isnan(RoundTo(DType::kE4m3, std::nan(""))));
  EXPECT_EQ(RoundTo(DType::kE5m2, 61440), kInfinity);
  EXPECT_EQ(RoundTo(DType::kE5m2, 61439), 57344);
  EXPECT_EQ(RoundTo(DType::kF32, 1e39), kInfinity);
}

TEST(HostTensor, KeepsTheSignOfZero) {
  for (DType type :
       {DType::kF64, DType::kF32, DType::kF16, DType::kBf16, DType::kE4m3, DType::kE5m2}) {
    EXPECT_TRUE(std::signbit(RoundTo(type, -0.0)));
    EXPECT_TRUE(std::signbit(RoundTo(type, -1e-300)) || type == DType::kF64);
  }
}

TEST(HostTensor, FloatsTruncateAndSaturateToIntegers) {
  for (auto [type, least, greatest] : {std::tuple{DType::kI8, -128.0, 127.0},
                                       {DType::kU8, 0.0, 255.0},
                                       {DType::kI4, -8.0, 7.0},
                                       {DType::kU4, 0.0, 15.0},
                                       {DType::kI16, -32768.0, 32767.0}}) {
    EXPECT_EQ(RoundTo(type, 1e30), greatest);
    EXPECT_EQ(RoundTo(type, -kInfinity), least);
    EXPECT_EQ(RoundTo(type, 3.99), 3);
    EXPECT_EQ(RoundTo(type, -0.99), 0);
    EXPECT_EQ(RoundTo(type, std::nan("")), 0);
  }
  EXPECT_EQ(TruncateTo(DType::kI64, 1e30), std::numeric_limits<int64_t>::max());
  EXPECT_EQ(TruncateTo(DType::kI64, -1e30), std::numeric_limits<int64_t>::min());
}

TEST(HostTensor, IntegersKeepTheirLowBits) {
  EXPECT_EQ(WrapTo(DType::kI8, 200), -56);
  EXPECT_EQ(WrapTo(DType::kU8, -1), 255);
  EXPECT_EQ(WrapTo(DType::kI4, 9), -7);
  EXPECT_EQ(WrapTo(DType::kU4, 17), 1);
  EXPECT_EQ(WrapTo(DType::kI32, int64_t{1} << 31), -(int64_t{1} << 31));
}

TEST(HostTensor, PacksNibblesLowFirst) {
  HostTensor tensor{DType::kI4, {4}, {1}, std::vector<uint8_t>(2)};
  for (int i = 0; i < 4; ++i) StoreInteger(tensor, i, i - 2);
  EXPECT_EQ(tensor.bytes[0], 0xFE);
  EXPECT_EQ(tensor.bytes[1], 0x10);
  for (int i = 0; i < 4; ++i) EXPECT_EQ(LoadAsInteger(tensor, i), i - 2);
}

// 2^62 + 2^54 lies between bf16 neighbours; a first rounding to f64 must not move it on a tie.
TEST(HostTensor, RoundsLargeIntegersOnce) {
  HostTensor one = One(DType::kBf16);
  const int64_t tie = (int64_t{1} << 62) + (int64_t{1} << 54);
  StoreInteger(one, 0, tie);
  EXPECT_EQ(LoadAsDouble(one, 0), 0x1p62);
  StoreInteger(one, 0, tie + 1);
  EXPECT_EQ(LoadAsDouble(one, 0), 0x1p62 + 0x1p55);
}

}  // namespace
}  // namespace kiln::compiler
