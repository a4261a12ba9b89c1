// SPDX-License-Identifier: Apache-2.0
#include "worker/compiler/analysis/interpreter.h"

#include <cmath>
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/worker/compiler/analysis/programs.h"

namespace kiln::compiler {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
const double kNan = std::nan("");

// Runs a program on inputs given as numbers; outputs as numbers, all of them one after the other.
absl::StatusOr<std::vector<double>> RunProgram(const char* text, const char* dims,
                                               const std::vector<std::vector<double>>& values) {
  auto workload = Check({"", text, dims});
  if (!workload.ok()) return workload.status();
  std::vector<HostTensor> inputs;
  for (const Tensor& tensor : workload->graph.tensors) {
    if (tensor.kind != TensorKind::kInput) continue;
    HostTensor input = MakeHostTensor(workload->graph, tensor, 0);
    const std::vector<double>& own = values[inputs.size()];
    for (size_t i = 0; i < own.size(); ++i) StoreDouble(input, static_cast<int64_t>(i), own[i]);
    inputs.push_back(input);
  }
  auto outputs = Interpret(*workload, inputs);
  if (!outputs.ok()) return outputs.status();
  std::vector<double> result;
  for (const HostTensor& output : *outputs) {
    for (int64_t i = 0; i < output.elements(); ++i) result.push_back(LoadAsDouble(output, i));
  }
  return result;
}

std::vector<double> Values(const char* text, const char* dims,
                           const std::vector<std::vector<double>>& values) {
  auto result = RunProgram(text, dims, values);
  EXPECT_TRUE(result.ok()) << result.status();
  return result.ok() ? *result : std::vector<double>{};
}

auto IsNanValue() { return ::testing::NanSensitiveDoubleEq(std::nan("")); }

TEST(Interpreter, MultipliesMatrices) {
  EXPECT_THAT(
      Values("operator P(M,N,K) { input A[M,K], B[K,N]; output C[M,N] = sum(A[i,k] * B[k,j]); }",
             "M=2,N=2,K=3", {{1, 2, 3, 4, 5, 6}, {1, 0, 0, 1, 1, 1}}),
      ElementsAre(4, 5, 10, 11));
}

TEST(Interpreter, NothingToSumGivesTheEpilogueOfZero) {
  const char* text =
      "operator P(M,N,K) { input A[M,K], B[K,N], b[N]; output C[M,N]; C[i,j] = sum(A[i,k] * "
      "B[k,j]) + b[j]; }";
  EXPECT_THAT(Values(text, "M=2,N=2,K=0", {{}, {}, {3, 4}}), ElementsAre(3, 4, 3, 4));
  EXPECT_THAT(Values(text, "M=0,N=2,K=3", {{}, {1, 2, 3, 4, 5, 6}, {3, 4}}), ElementsAre());
  EXPECT_THAT(
      Values("operator P(M,K) { input A[M,K]; output y[M]; y[i] = max(A[i,k]); }", "M=2,K=0", {{}}),
      ElementsAre(-kInfinity, -kInfinity));
}

TEST(Interpreter, ScalarsAndSingleElements) {
  EXPECT_THAT(Values("operator P(N) { input x[N]; output y[]; y[] = sum(x[i]); }", "N=1", {{5}}),
              ElementsAre(5));
  EXPECT_THAT(
      Values("operator P(N) { input x[N], y[N]; output z[N]; z = x + y; }", "N=1", {{5}, {6}}),
      ElementsAre(11));
}

TEST(Interpreter, NanWinsWhereverItStands) {
  for (int at : {0, 1, 2}) {
    std::vector<double> row = {1, 5, -2};
    row[at] = kNan;
    EXPECT_THAT(Values("operator P(N) { input x[N]; output a[], b[], c[] : i32; a[] = max(x[i]); "
                       "b[] = min(x[i]); "
                       "c[] = argmax(x[i]); }",
                       "N=3", {row}),
                ElementsAre(IsNanValue(), IsNanValue(), at));
    EXPECT_THAT(Values("operator P(N) { input x[N]; output y[N]; y[i] = softmax(x[i] over [i]); }",
                       "N=3", {row}),
                ElementsAre(IsNanValue(), IsNanValue(), IsNanValue()));
  }
  EXPECT_THAT(Values("operator P(N) { input x[N]; output y[N]; y[i] = relu(x[i]); }", "N=3",
                     {{kNan, -1, kInfinity}}),
              ElementsAre(IsNanValue(), 0, kInfinity));
  EXPECT_THAT(Values("operator P(N) { input x[N]; output y[N]; y[i] = x[i] > 0 ? 1 : 2; }", "N=1",
                     {{kNan}}),
              ElementsAre(2));
}

TEST(Interpreter, NegativeZeroIsBelowZero) {
  const std::vector<double> values =
      Values("operator P(N) { input x[N], y[N]; output a[N], b[N]; a = max(x, y); b = min(x, y); }",
             "N=2", {{-0.0, 0.0}, {0.0, -0.0}});
  EXPECT_FALSE(std::signbit(values[0]) || std::signbit(values[1]));
  EXPECT_TRUE(std::signbit(values[2]) && std::signbit(values[3]));
}

TEST(Interpreter, ArgmaxGivesTheFirstGreatest) {
  EXPECT_THAT(Values("operator P(N) { input x[N]; output a[] : i32, b[] : i32; a[] = argmax(x[i]); "
                     "b[] = argmin(x[i]); }",
                     "N=5", {{1, 7, 7, -3, -3}}),
              ElementsAre(1, 3));
}

TEST(Interpreter, SoftmaxOfARowOfMinusInfinityIsZero) {
  EXPECT_THAT(Values("operator P(N) { input x[N]; output y[N]; y[i] = softmax(x[i] over [i]); }",
                     "N=2", {{-kInfinity, -kInfinity}}),
              ElementsAre(0, 0));
  EXPECT_THAT(Values("operator P(N) { input x[N]; output y[N]; y[i] = softmax(x[i] over [i]); }",
                     "N=2", {{-kInfinity, 3}}),
              ElementsAre(0, 1));
}

TEST(Interpreter, IntegersWrapAndDivideTowardsZero) {
  EXPECT_THAT(Values("operator P(N) { input x[N] : i32, y[N] : i32; output a[N] : i32, b[N] : i32, "
                     "c[N] : i32; "
                     "a = x / y; b = x % y; c = x * y; }",
                     "N=5", {{7, -7, 7, 5, 2147483647}, {2, 2, -2, 0, 2}}),
              ElementsAre(3, -3, -3, 0, 1073741823, 1, -1, 1, 0, 1, 14, -14, -14, 0, -2));
}

TEST(Interpreter, CastsSaturateFromFloatsAndWrapFromIntegers) {
  EXPECT_THAT(Values("operator P(N) { input x[N]; output y[N] : i8; y = cast(x, i8); }", "N=5",
                     {{300, -300, 3.9, -3.9, kNan}}),
              ElementsAre(127, -128, 3, -3, 0));
  EXPECT_THAT(Values("operator P(N) { input x[N] : i32; output y[N] : i8; y = cast(x, i8); }",
                     "N=2", {{300, -300}}),
              ElementsAre(44, -44));
}

TEST(Interpreter, RoundsHalfToEvenAndFollowsTheDividend) {
  EXPECT_THAT(Values("operator P(N) { input x[N]; output y[N], z[N]; y = round(x); z = x % 2; }",
                     "N=4", {{0.5, 1.5, -2.5, -3.5}}),
              ElementsAre(0, 2, -2, -4, 0.5, 1.5, -0.5, -1.5));
}

TEST(Interpreter, ReadsElseOutside) {
  EXPECT_THAT(
      Values(
          "operator P(N) { input x[N]; output y[N]; y[i] = (x[i-1] else 9) + (x[i+1] else -1); }",
          "N=3", {{1, 2, 3}}),
      ElementsAre(11, 4, 1));
}

TEST(Interpreter, NamesASubscriptThatDataPutsOutside) {
  auto result =
      RunProgram("operator P(N,M) { input x[N], ids[M] : i32; output y[M]; y[i] = x[ids[i]]; }",
                 "N=3,M=2", {{1, 2, 3}, {1, 3}});
  EXPECT_EQ(result.status().code(), absl::StatusCode::kOutOfRange);
  EXPECT_THAT(std::string(result.status().message()), HasSubstr("x: subscript 1 is 3"));
}

TEST(Interpreter, EvaluatesOnlyTheChosenSide) {
  EXPECT_THAT(Values("operator P(N,M) { input x[N], ids[M] : i32; output y[M]; y[i] = ids[i] < N ? "
                     "x[ids[i]] : -1; }",
                     "N=3,M=2", {{1, 2, 3}, {1, 3}}),
              ElementsAre(2, -1));
}

TEST(Interpreter, TypedTemporariesRound) {
  EXPECT_THAT(
      Values("operator P(N) { input x[N]; output y[N]; t[i] : f16 = x[i] + 1; y[i] = t[i] - 1; }",
             "N=1", {{0x1p-12}}),
      ElementsAre(0));
}

// Quadratic work would take 2048 * 2048 * 2048 steps here.
TEST(Interpreter, RowsAreReducedOnce) {
  std::vector<double> row(2048, 1);
  const std::vector<double> values = Values(
      "operator P(N) { input x[N]; output y[N]; m = avg(x over [N]); v = avg((x - m)^2 over [N]); "
      "y = (x - m) + v; }",
      "N=2048", {row});
  EXPECT_EQ(values[77], 0);
}

TEST(Interpreter, RefusesInputsOfAnotherShape) {
  auto workload = Check({"", "operator P(N) { input x[N]; output y[N]; y = x; }", "N=3"});
  ASSERT_TRUE(workload.ok());
  EXPECT_EQ(Interpret(*workload, {}).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Interpret(*workload, {HostTensor{DType::kF32, {2}, {1}, std::vector<uint8_t>(8)}})
                .status()
                .code(),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace kiln::compiler
