// SPDX-License-Identifier: Apache-2.0
#include "worker/verify/verdict.h"

#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/worker/compiler/analysis/programs.h"
#include "worker/verify/exactness.h"
#include "worker/verify/guarded_buffer.h"
#include "worker/verify/inputs.h"
#include "worker/verify/references.h"

namespace kiln::verify {
namespace {

using compiler::HostTensor;
using ::testing::HasSubstr;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

Verdict JudgeOne(DType type, double got, double want, double error, bool exact = false) {
  HostTensor tensor{type, {1}, {1}, std::vector<uint8_t>(8)};
  compiler::StoreDouble(tensor, 0, got);
  return Judge("y", tensor, {{want}, {error}}, exact, {});
}

TEST(Verdict, DemandsFiniteAndWithin) {
  EXPECT_TRUE(JudgeOne(DType::kF32, 1.0, 1.0 + 1e-9, 1e-9).right);
  EXPECT_TRUE(JudgeOne(DType::kF32, 1.001, 1.0, 1e-3).right);
  EXPECT_FALSE(JudgeOne(DType::kF32, 1.01, 1.0, 1e-3).right);
  EXPECT_FALSE(JudgeOne(DType::kF32, std::nan(""), 1.0, 1e30).right);
  EXPECT_FALSE(JudgeOne(DType::kF32, kInfinity, 1.0, 1e30).right);
}

TEST(Verdict, WantsNanAndInfinityWhereTheReferenceHasThem) {
  EXPECT_TRUE(JudgeOne(DType::kF32, std::nan(""), std::nan(""), 0).right);
  EXPECT_FALSE(JudgeOne(DType::kF32, 1, std::nan(""), 0).right);
  EXPECT_TRUE(JudgeOne(DType::kF32, kInfinity, kInfinity, 0).right);
  EXPECT_FALSE(JudgeOne(DType::kF32, -kInfinity, kInfinity, 0).right);
  EXPECT_FALSE(JudgeOne(DType::kF32, std::nan(""), kInfinity, 0).right);
}

TEST(Verdict, RoundingToTheStorageTypeIsAllowedOnce) {
  EXPECT_TRUE(JudgeOne(DType::kF16, 1.0009765625, 1.0006, 0).right);  // the nearer neighbour
  EXPECT_FALSE(JudgeOne(DType::kF16, 1.0, 1.0006, 0).right);          // the farther one
  EXPECT_TRUE(
      JudgeOne(DType::kF16, 1.0, 1.0006, 1e-4).right);  // the value may lie beyond the middle
  EXPECT_TRUE(JudgeOne(DType::kF16, kInfinity, 1e6, 1).right);
  EXPECT_TRUE(JudgeOne(DType::kE4m3, 448, 1e6, 1).right);
  EXPECT_FALSE(JudgeOne(DType::kF16, 65504, 1e6, 1).right);
}

TEST(Verdict, ExactOutputsHaveNoTolerance) {
  EXPECT_TRUE(JudgeOne(DType::kF32, 12, 12, 5, true).right);
  EXPECT_FALSE(JudgeOne(DType::kF32, 13, 12, 5, true).right);
  EXPECT_FALSE(JudgeOne(DType::kI32, 13, 12, 0).right);
}

TEST(Verdict, ComparesWideIntegersBitForBit) {
  HostTensor tensor{DType::kI64, {1}, {1}, std::vector<uint8_t>(8)};
  const int64_t value = (int64_t{1} << 60) + 1;
  compiler::StoreInteger(tensor, 0, value);
  double bits;
  std::memcpy(&bits, &value, 8);
  EXPECT_TRUE(Judge("y", tensor, {{bits}, {0}}, false, {}).right);
  compiler::StoreInteger(tensor, 0, value - 1);
  const Verdict verdict = Judge("y", tensor, {{bits}, {0}}, false, {});
  EXPECT_FALSE(verdict.right);
  EXPECT_THAT(verdict.reason, HasSubstr("is 1152921504606846976, not 1152921504606846977"));
}

TEST(Verdict, ABoolIsZeroOrOne) {
  HostTensor tensor{DType::kBool, {1}, {1}, {0xA5}};
  EXPECT_FALSE(Judge("y", tensor, {{1}, {0}}, false, {}).right);
}

TEST(Verdict, AnotherNumberOfElementsIsWrong) {
  HostTensor tensor{DType::kF32, {2}, {1}, std::vector<uint8_t>(8)};
  EXPECT_THAT(Judge("y", tensor, {{0}, {0}}, false, {}).reason, HasSubstr("2 elements, not 1"));
}

TEST(Verdict, ApproximatePolicyLetsDenormalsFlush) {
  HostTensor tensor{DType::kF32, {1}, {1}, std::vector<uint8_t>(4)};
  EXPECT_FALSE(Judge("y", tensor, {{1e-39}, {0}}, false, {}).right);
  EXPECT_TRUE(Judge("y", tensor, {{1e-39}, {0}}, false, {.approximate = true}).right);
}

TEST(Exactness, FollowsTypesAndLengths) {
  auto exact = [](const char* text, const char* dims, int magnitude) -> bool {
    auto workload = compiler::Check({"", text, dims});
    EXPECT_TRUE(workload.ok()) << workload.status();
    return ExactOutputs(*workload, magnitude).at(0);
  };
  const char* product =
      "operator P(M,K) { input A[M,K], x[K]; output y[M]; y[i] = sum(A[i,k] * x[k]); }";
  EXPECT_TRUE(exact(product, "M=2,K=4096", 8));
  EXPECT_FALSE(exact(product, "M=2,K=4194304", 8));
  EXPECT_TRUE(exact(product, "M=2,K=4194304", 2));
  EXPECT_TRUE(
      exact("operator P(M) { input x[M]; output y[M]; y = relu(x * 0.125 - 3); }", "M=2", 8));
  EXPECT_FALSE(exact("operator P(M) { input x[M]; output y[M]; y = x * 0.1; }", "M=2", 8));
  EXPECT_FALSE(exact("operator P(M) { input x[M]; output y[M]; y = exp(x); }", "M=2", 8));
}

TEST(Inputs, AreTheSameForOneSeedAndDifferForAnother) {
  auto workload = compiler::Check(compiler::Programs()[0]);
  for (SetKind kind : SetKinds(*workload)) {
    EXPECT_EQ(MakeInputs(*workload, kind, 5)[0].bytes, MakeInputs(*workload, kind, 5)[0].bytes);
  }
  EXPECT_NE(MakeInputs(*workload, SetKind::kRandom, 5)[0].bytes,
            MakeInputs(*workload, SetKind::kRandom, 6)[0].bytes);
}

TEST(Inputs, NonFiniteRowsHaveNanFirstInTheMiddleAndLast) {
  auto workload = compiler::Check(
      {"", "operator P(M,N) { input x[M,N]; output y[M]; y[i] = max(x[i,j]); }", "M=64,N=9"});
  ASSERT_TRUE(workload.ok());
  const HostTensor x = MakeInputs(*workload, SetKind::kNonFinite, 1)[0];
  int nan_at[9] = {}, infinite = 0, clean = 0;
  for (int i = 0; i < 64; ++i) {
    bool special = false;
    for (int j = 0; j < 9; ++j) {
      const double value = compiler::LoadAsDouble(x, i * 9 + j);
      nan_at[j] += std::isnan(value);
      infinite += std::isinf(value);
      special |= !std::isfinite(value);
    }
    clean += !special;
  }
  EXPECT_GE(nan_at[0], 1);
  EXPECT_GE(nan_at[4], 1);
  EXPECT_GE(nan_at[8], 1);
  EXPECT_GE(infinite, 2);
  EXPECT_GE(clean, 50);
}

TEST(Inputs, RowPointersAscendOverAllElements) {
  for (const compiler::Program& program : compiler::Programs()) {
    if (std::string(program.name) != "spmv") continue;
    auto workload = compiler::Check(program);
    const std::vector<HostTensor> inputs = MakeInputs(*workload, SetKind::kRandom, 9);
    int64_t last = 0;
    for (int i = 0; i <= 6; ++i) {
      const int64_t value = compiler::LoadAsInteger(inputs[0], i);
      EXPECT_GE(value, last);
      last = value;
    }
    EXPECT_EQ(last, 17);
    for (int i = 0; i < 17; ++i) EXPECT_LT(compiler::LoadAsInteger(inputs[1], i), 9);
  }
}

TEST(GuardedBuffer, HasThePromisedAlignmentAndNoBetter) {
  for (int64_t alignment : {1, 2, 4, 16, 64, 256}) {
    for (int64_t bytes : {0, 1, 60, 4096, 4100}) {
      auto buffer = GuardedBuffer::Make("x", bytes, alignment);
      ASSERT_TRUE(buffer.ok());
      for (Placement placement : {Placement::kEnd, Placement::kAligned, Placement::kStart}) {
        buffer->Place(placement);
        const uintptr_t at = reinterpret_cast<uintptr_t>(buffer->data());
        EXPECT_EQ(at % static_cast<uintptr_t>(alignment), 0u);
        if (placement == Placement::kAligned) {
          EXPECT_NE(at % static_cast<uintptr_t>(2 * alignment), 0u);
        }
        if (placement == Placement::kEnd && bytes % alignment == 0) {
          EXPECT_EQ((at + bytes) % 4096, 0u);
        }
        if (placement == Placement::kStart) {
          EXPECT_EQ(at % 4096, 0u);
        }
        std::memset(buffer->data(), 1, static_cast<size_t>(bytes));
        buffer->SetCanary();
        EXPECT_EQ(buffer->CheckCanary(), "");
      }
    }
  }
}

TEST(ReferenceCache, KeepsSetsForOtherProcessesAndDistrustsDamage) {
  auto workload =
      compiler::Check({"", "operator P(N) { input x[N]; output y[N]; y = x + 1; }", "N=100"});
  ASSERT_TRUE(workload.ok());
  int calls = 0;
  auto reference = [&](const void* const*, double* const* v, double* const* e, int) {
    ++calls;
    for (int i = 0; i < 100; ++i) v[0][i] = i, e[0][i] = 0;
    return 0;
  };
  std::string folder = (std::filesystem::temp_directory_path() / "kiln-references-XXXXXX").string();
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  auto get = [&](uint64_t seed) {
    ReferenceCache cache(*workload, reference, {.seed = seed, .threads = 1, .directory = folder});
    auto set = cache.Get(SetKind::kRandom);
    EXPECT_EQ((*set)->outputs[0].values[99], 99);
    return calls;
  };
  EXPECT_EQ(get(1), 1);
  EXPECT_EQ(get(1), 1);
  EXPECT_EQ(get(2), 2);  // other inputs
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    std::fstream file(entry.path(), std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(-40, std::ios::end);
    file.put('x');
  }
  EXPECT_EQ(get(2), 3);
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace kiln::verify
