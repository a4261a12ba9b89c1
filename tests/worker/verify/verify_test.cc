// SPDX-License-Identifier: Apache-2.0
// Candidates as closures, right and wrong in every way that the field cases name.
#include "worker/verify/verify.h"

#include <cmath>
#include <cstring>
#include <functional>
#include <limits>

#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/worker/compiler/analysis/programs.h"
#include "worker/compiler/analysis/interpreter.h"
#include "worker/verify/guard_fault.h"

namespace kiln::verify {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Pointers = std::vector<void*>;

constexpr int kM = 9, kN = 17, kK = 23;

Workload MakeProduct(const char* strides = "", const char* policy = "") {
  auto workload = compiler::Check(
      {"", "operator P(M,N,K) { input A[M,K], B[K,N]; output C[M,N] = sum(A[i,k] * B[k,j]); }",
       "M=9,N=17,K=23", "", strides, policy});
  EXPECT_TRUE(workload.ok()) << workload.status();
  return *workload;
}

// Written independently of the emitted reference.
int ProductReference(const void* const* inputs, double* const* values, double* const* errors, int) {
  const float* a = static_cast<const float*>(inputs[0]);
  const float* b = static_cast<const float*>(inputs[1]);
  for (int i = 0; i < kM; ++i) {
    for (int j = 0; j < kN; ++j) {
      double sum = 0, scale = 0;
      for (int k = 0; k < kK; ++k) {
        const double term = static_cast<double>(a[i * kK + k]) * b[k * kN + j];
        sum += term;
        scale += std::fabs(term);
      }
      values[0][i * kN + j] = sum;
      errors[0][i * kN + j] = std::isfinite(sum) ? kK * 0x1p-24 * scale + 1e-44 : 0;
    }
  }
  return 0;
}

void RightProduct(const Pointers& t, int64_t row = kN) {
  const float* a = static_cast<const float*>(t[0]);
  const float* b = static_cast<const float*>(t[1]);
  float* c = static_cast<float*>(t[2]);
  for (int i = 0; i < kM; ++i) {
    for (int j = 0; j < kN; ++j) {
      float sum = 0;
      for (int k = 0; k < kK; ++k) sum += a[i * kK + k] * b[k * kN + j];
      c[i * row + j] = sum;
    }
  }
}

// Runs `kernel` as a candidate for the product.
template <typename Kernel>
VerifyResult Try(const Kernel& kernel, const Workload& workload = MakeProduct(),
                 Depth depth = Depth::kFull) {
  ReferenceCache cache(workload, ProductReference, {.seed = 3, .threads = 1});
  auto result = VerifyPlan(
      workload, cache,
      [&](const Pointers& t) {
        kernel(t);
        return absl::OkStatus();
      },
      depth);
  EXPECT_TRUE(result.ok()) << result.status();
  return result.ok() ? *result : VerifyResult{};
}

float* Out(const Pointers& t) { return static_cast<float*>(t[2]); }

TEST(VerifyPlan, PassesARightKernelOnEverySet) {
  const VerifyResult result = Try([](const Pointers& t) { RightProduct(t); });
  EXPECT_TRUE(result.ok()) << result.reason;
  EXPECT_THAT(result.verification.set_names, ElementsAre("small-integer", "random", "cancellation",
                                                         "negative", "extreme", "non-finite"));
  EXPECT_EQ(result.verification.sets, 6);
  EXPECT_LE(result.verification.max_error, 1);
  EXPECT_EQ(result.verification.method, "f64-reference/1");
}

TEST(VerifyPlan, ScreensWithTwoSets) {
  EXPECT_EQ(Try([](const Pointers& t) { RightProduct(t); }, MakeProduct(), Depth::kScreen)
                .verification.sets,
            2);
}

TEST(VerifyPlan, PromisedFiniteOperandsSpareTheNonFiniteSet) {
  EXPECT_EQ(Try([](const Pointers& t) { RightProduct(t); }, MakeProduct("", "finite_only"))
                .verification.sets,
            5);
}

TEST(VerifyPlan, RejectsConstantOutputs) {
  for (float value :
       {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(), 0.0f}) {
    const VerifyResult result = Try([&](const Pointers& t) {
      for (int i = 0; i < kM * kN; ++i) Out(t)[i] = value;
    });
    EXPECT_EQ(result.stage, Stage::kMismatch) << value;
    EXPECT_THAT(result.reason, HasSubstr("C[0,0] is"));
  }
}

TEST(VerifyPlan, RejectsOneWrongElement) {
  const VerifyResult result = Try([](const Pointers& t) {
    RightProduct(t);
    Out(t)[5 * kN + 3] += 1;
  });
  EXPECT_EQ(result.stage, Stage::kMismatch);
  EXPECT_THAT(result.reason, HasSubstr("C[5,3] is"));
  EXPECT_THAT(result.reason, HasSubstr("1 of 153 are wrong (small-integer inputs)"));
}

TEST(VerifyPlan, RejectsADroppedAndADoubledTerm) {
  for (float factor : {-1.0f, 1.0f}) {
    const VerifyResult result = Try([&](const Pointers& t) {
      RightProduct(t);
      const float* a = static_cast<const float*>(t[0]);
      const float* b = static_cast<const float*>(t[1]);
      for (int j = 0; j < kN; ++j) Out(t)[j] += factor * a[kK - 1] * b[(kK - 1) * kN + j];
    });
    EXPECT_EQ(result.stage, Stage::kMismatch);
  }
}

TEST(VerifyPlan, RejectsPermutedValues) {
  EXPECT_EQ(Try([](const Pointers& t) {
              RightProduct(t);
              std::swap(Out(t)[0], Out(t)[kN + 1]);
              std::swap(Out(t)[1], Out(t)[kN + 2]);
            }).stage,
            Stage::kMismatch);
}

TEST(VerifyPlan, RejectsAHalfWrittenOutputAfterARightCandidate) {
  const Workload workload = MakeProduct();
  ReferenceCache cache(workload, ProductReference, {.seed = 3, .threads = 1});
  auto right = [](const Pointers& t) {
    RightProduct(t);
    return absl::OkStatus();
  };
  auto half = [](const Pointers& t) {
    std::vector<float> kept(Out(t) + kM * kN / 2, Out(t) + kM * kN);
    RightProduct(t);
    std::copy(kept.begin(), kept.end(), Out(t) + kM * kN / 2);
    return absl::OkStatus();
  };
  EXPECT_TRUE(VerifyPlan(workload, cache, right, Depth::kFull)->ok());
  EXPECT_EQ(VerifyPlan(workload, cache, half, Depth::kFull)->stage, Stage::kMismatch);
  EXPECT_TRUE(VerifyPlan(workload, cache, right, Depth::kFull)->ok());
}

TEST(VerifyPlan, TheOrderOfCandidatesChangesNoVerdict) {
  const Workload workload = MakeProduct();
  for (bool wrong_first : {true, false}) {
    ReferenceCache cache(workload, ProductReference, {.seed = 3, .threads = 1});
    for (int i = 0; i < 4; ++i) {
      const bool wrong = wrong_first == (i % 2 == 0);
      auto result = VerifyPlan(
          workload, cache,
          [&](const Pointers& t) {
            RightProduct(t);
            if (wrong) Out(t)[7] *= 1.01f;
            return absl::OkStatus();
          },
          Depth::kScreen);
      EXPECT_EQ(result->ok(), !wrong);
    }
  }
}

TEST(VerifyPlan, ComputesEachReferenceOnce) {
  const Workload workload = MakeProduct();
  int calls = 0;
  ReferenceCache cache(workload,
                       [&](const void* const* in, double* const* v, double* const* e, int threads) {
                         ++calls;
                         return ProductReference(in, v, e, threads);
                       },
                       {.seed = 3, .threads = 1});
  auto right = [](const Pointers& t) {
    RightProduct(t);
    return absl::OkStatus();
  };
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(VerifyPlan(workload, cache, right, Depth::kFull)->ok());
  EXPECT_EQ(calls, 6);
}

TEST(VerifyPlan, AFailedLaunchIsTheCandidates) {
  const Workload workload = MakeProduct();
  ReferenceCache cache(workload, ProductReference, {.seed = 3, .threads = 1});
  auto result = VerifyPlan(
      workload, cache, [](const Pointers&) { return absl::InternalError("no such entry"); },
      Depth::kFull);
  EXPECT_EQ(result->stage, Stage::kLaunch);
  EXPECT_THAT(result->reason, HasSubstr("no such entry"));
}

TEST(VerifyPlan, AReferenceThatFailsIsNotTheCandidates) {
  const Workload workload = MakeProduct();
  for (auto [code, want] :
       {std::pair{1, absl::StatusCode::kResourceExhausted}, {2, absl::StatusCode::kInternal}}) {
    ReferenceCache cache(
        workload,
        [code = code](const void* const*, double* const*, double* const*, int) { return code; },
        {});
    EXPECT_EQ(VerifyPlan(
                  workload, cache, [](const Pointers&) { return absl::OkStatus(); }, Depth::kFull)
                  .status()
                  .code(),
              want);
  }
}

TEST(VerifyPlan, NoticesAnInputThatWasWritten) {
  const VerifyResult result = Try([](const Pointers& t) {
    RightProduct(t);
    static_cast<float*>(t[1])[4] = 2;
  });
  EXPECT_EQ(result.stage, Stage::kOutOfBounds);
  EXPECT_THAT(result.reason, HasSubstr("of the input B"));
}

TEST(VerifyPlan, PaddingBetweenRowsIsNeverWritten) {
  const Workload workload = MakeProduct("C=20:1");
  EXPECT_TRUE(Try([](const Pointers& t) { RightProduct(t, 20); }, workload).ok());
  const VerifyResult result = Try(
      [](const Pointers& t) {
        RightProduct(t, 20);
        Out(t)[20 + kN] = 0;
      },
      workload);
  EXPECT_EQ(result.stage, Stage::kOutOfBounds);
  EXPECT_THAT(result.reason, HasSubstr("which is padding"));
}

TEST(VerifyPlan, AWriteShortOfTheGuardPageShows) {
  // Four bytes past the end lie before the page in the placement that is no better aligned than
  // promised.
  const VerifyResult result = Try([](const Pointers& t) {
    RightProduct(t);
    const uintptr_t past = reinterpret_cast<uintptr_t>(Out(t) + kM * kN);
    if (past % 4096 != 0) Out(t)[kM * kN] = 0;
  });
  EXPECT_EQ(result.stage, Stage::kOutOfBounds);
  EXPECT_THAT(result.reason, HasSubstr("past the end of C"));
}

void ReportToStderr(const GuardFault& fault) {
  char text[256];
  const size_t size = FormatFault(fault, text, sizeof(text));
  if (write(2, text, size) < 0) _exit(1);
}

[[maybe_unused]] void Crash(const std::function<void(const Pointers&)>& kernel) {
  InstallFaultReporter(ReportToStderr);
  Try([&](const Pointers& t) {
    RightProduct(t);
    kernel(t);
  });
}

TEST(VerifyPlanDeathTest, FaultsInGuardPagesAreToldFromOtherCrashes) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  EXPECT_EXIT(Crash([](const Pointers& t) { Out(t)[kM * kN + 4] = 1; }),
              ::testing::ExitedWithCode(kFaultExit),
              "out of bounds: (writes|touches) C, [0-9]+ bytes past the end");
  EXPECT_EXIT(Crash([](const Pointers& t) {
                volatile float sink = static_cast<const float*>(t[0])[kM * kK + 4];
                static_cast<void>(sink);
              }),
              ::testing::ExitedWithCode(kFaultExit),
              "out of bounds: (reads|touches) A, [0-9]+ bytes past the end");
  EXPECT_EXIT(Crash([](const Pointers& t) {
                volatile float sink = static_cast<const float*>(t[1])[-1200];
                static_cast<void>(sink);
              }),
              ::testing::ExitedWithCode(kFaultExit), "B, [0-9]+ bytes before the beginning");
  EXPECT_EXIT(Crash([](const Pointers&) {
                static volatile uintptr_t wild = 16;
                *reinterpret_cast<volatile int*>(wild) = 1;
              }),
              ::testing::ExitedWithCode(kFaultExit), "crash: SIGSEGV at 0x10");
#else
  GTEST_SKIP() << "the sanitizer brings a fault handler of its own";
#endif
}

TEST(VerifyPlan, InPlaceOperationIsVerifiedInPlace) {
  WorkloadSpec spec;
  spec.program = "operator P(N) { input x[N]; output y[N]; y[i] = x[i] * 3; }";
  spec.dims = *ParseDims("N=33");
  spec.alias = {{"y", "x"}};
  auto workload = CheckWorkload(spec);
  ASSERT_TRUE(workload.ok()) << workload.status();
  auto reference = [](const void* const* in, double* const* v, double* const* e, int) {
    for (int i = 0; i < 33; ++i) {
      v[0][i] = 3.0 * static_cast<const float*>(in[0])[i];
      e[0][i] = std::isfinite(v[0][i]) ? 0x1p-24 * std::fabs(v[0][i]) + 1e-44 : 0;
    }
    return 0;
  };
  ReferenceCache cache(*workload, reference, {.seed = 1});
  for (int times : {1, 2}) {  // a second application to live data is wrong
    auto result = VerifyPlan(
        *workload, cache,
        [&](const Pointers& t) {
          EXPECT_EQ(t[0], t[1]);
          for (int round = 0; round < times; ++round) {
            for (int i = 0; i < 33; ++i) static_cast<float*>(t[1])[i] *= 3;
          }
          return absl::OkStatus();
        },
        Depth::kFull);
    EXPECT_EQ(result->ok(), times == 1) << result->reason;
  }
}

TEST(VerifyPlan, AMaximumThatDropsNanIsRejected) {
  auto workload = compiler::Check(
      {"", "operator P(M,N) { input x[M,N]; output y[M]; y[i] = max(x[i,j]); }", "M=16,N=5"});
  ASSERT_TRUE(workload.ok());
  auto reference = [&](const void* const* in, double* const* v, double* const* e, int) {
    compiler::HostTensor x{DType::kF32, {16, 5}, {5, 1}, {}};
    x.bytes.assign(static_cast<const uint8_t*>(in[0]), static_cast<const uint8_t*>(in[0]) + 320);
    auto outputs = compiler::Interpret(*workload, {x});
    for (int i = 0; i < 16; ++i) v[0][i] = compiler::LoadAsDouble((*outputs)[0], i), e[0][i] = 0;
    return 0;
  };
  ReferenceCache cache(*workload, reference, {.seed = 1});
  for (bool propagates : {true, false}) {
    auto result = VerifyPlan(
        *workload, cache,
        [&](const Pointers& t) {
          const float* x = static_cast<const float*>(t[0]);
          for (int i = 0; i < 16; ++i) {
            float best = -std::numeric_limits<float>::infinity();
            for (int j = 0; j < 5; ++j) {
              const float value = x[i * 5 + j];
              if (propagates && (std::isnan(value) || std::isnan(best)))
                best = std::nanf("");
              else
                best = std::fmax(best, value);
            }
            static_cast<float*>(t[1])[i] = best;
          }
          return absl::OkStatus();
        },
        Depth::kFull);
    EXPECT_EQ(result->ok(), propagates);
    if (!propagates) {
      EXPECT_THAT(result->reason, HasSubstr("not nan"));
    }
  }
}

}  // namespace
}  // namespace kiln::verify
