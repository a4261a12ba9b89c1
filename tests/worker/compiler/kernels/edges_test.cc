// SPDX-License-Identifier: Apache-2.0
// Ends of the contraction family: empty extents, single elements, long batches, literals, special
// values, and what the space promises.
#include <gtest/gtest.h>

#include <clocale>
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "tests/worker/compiler/kernels/harness.h"
#include "worker/compiler/analysis/interpreter.h"
#include "worker/compiler/compiler.h"
#include "worker/compiler/emit/literal.h"
#include "worker/compiler/families/family.h"

namespace kiln::compiler {
namespace {

WorkloadSpec Spec(const std::string& program, const std::string& dims) {
  WorkloadSpec spec;
  spec.program = program;
  spec.dims = *ParseDims(dims);
  return spec;
}

constexpr char kMatMul[] =
    "operator P(M,N,K) { input A[M,K], B[K,N]; output C[M,N]; C[i,j] = sum(A[i,k]*B[k,j]); }";
constexpr char kBiased[] =
    "operator P(M,N,K) { input A[M,K], B[K,N], b[N]; output C[M,N]; C[i,j] = sum(A[i,k]*B[k,j]) + "
    "b[j]; }";
constexpr char kBatched[] =
    "operator P(B,M,K) { input A[B,M,K], x[B,K]; output y[B,M]; y[b,i] = sum(A[b,i,k]*x[b,k]); }";

std::unique_ptr<Space> SpaceOf(const Workload& workload, const DeviceFingerprint& device) {
  auto family = MatchFamily(workload, device, nullptr);
  EXPECT_TRUE(family.ok()) << family.status();
  auto space = (*family)->MakeSpace(workload, device);
  EXPECT_TRUE(space.ok()) << space.status();
  return *std::move(space);
}

// Runs the default schedules of all specs against the interpreter.
void ExpectDefaultsAgree(const std::vector<WorkloadSpec>& specs, double tolerance,
                         bool integers = true) {
  const DeviceFingerprint device = TestDevice();
  KernelBatch batch;
  std::vector<Workload> workloads;
  for (const WorkloadSpec& spec : specs) {
    workloads.push_back(MakeWorkload(spec));
    auto kernel =
        batch.Add(workloads.back(), device, SpaceOf(workloads.back(), device)->default_schedule());
    ASSERT_TRUE(kernel.ok()) << kernel.status() << spec.program;
  }
  const absl::Status compiled = batch.Compile();
  ASSERT_TRUE(compiled.ok()) << compiled;
  for (size_t i = 0; i < specs.size(); ++i) {
    const auto inputs = MakeInputs(workloads[i], 5, integers);
    auto want = Interpret(workloads[i], inputs, Arithmetic::kDouble);
    ASSERT_TRUE(want.ok()) << want.status();
    auto got = batch.Run(static_cast<int>(i), inputs, false);
    ASSERT_TRUE(got.ok()) << got.status() << batch.source(static_cast<int>(i));
    EXPECT_LE(LargestError(*got, (*want)[0]), tolerance)
        << specs[i].program << batch.source(static_cast<int>(i));
  }
}

TEST(ContractionEdges, EmptySumsGiveTheEpilogueOfZeros) {
  ExpectDefaultsAgree(
      {Spec(kMatMul, "M=5,N=9,K=0"), Spec(kBiased, "M=5,N=9,K=0"), Spec(kMatMul, "M=1,N=1,K=0")},
      0);
}

TEST(ContractionEdges, EmptyOutputsArePlansWithoutSteps) {
  const DeviceFingerprint device = TestDevice();
  for (const char* dims : {"M=0,N=4,K=3", "M=4,N=0,K=3", "M=0,N=0,K=0"}) {
    const Workload workload = MakeWorkload(Spec(kBiased, dims));
    auto emission = Emit(workload, device, SpaceOf(workload, device)->default_schedule());
    ASSERT_TRUE(emission.ok()) << emission.status();
    EXPECT_TRUE(emission->plan.steps.empty());
    EXPECT_EQ(emission->plan.tensors.size(), 4u);
  }
}

// Cases C2: batches around a limit of some grids.
TEST(ContractionEdges, BatchesOfAnyLengthAreRight) {
  const DeviceFingerprint device = TestDevice();
  KernelBatch batch;
  std::vector<Workload> workloads;
  for (int64_t length : {65535, 65536, 70001}) {
    workloads.push_back(MakeWorkload(Spec(kBatched, absl::StrCat("B=", length, ",M=5,K=4"))));
    auto kernel =
        batch.Add(workloads.back(), device, SpaceOf(workloads.back(), device)->default_schedule());
    ASSERT_TRUE(kernel.ok()) << kernel.status();
  }
  const absl::Status compiled = batch.Compile();
  ASSERT_TRUE(compiled.ok()) << compiled;
  for (int i = 0; i < 3; ++i) {
    const auto inputs = MakeInputs(workloads[i], 5, true);
    auto got = batch.Run(i, inputs, false);
    ASSERT_TRUE(got.ok()) << got.status();
    for (int64_t b : {int64_t{0}, int64_t{65534}, got->shape[0] - 1}) {
      for (int64_t m = 0; m < 5; ++m) {
        double want = 0;
        for (int64_t k = 0; k < 4; ++k)
          want += LoadAsDouble(inputs[0], (b * 5 + m) * 4 + k) * LoadAsDouble(inputs[1], b * 4 + k);
        ASSERT_EQ(LoadAsDouble(*got, b * 5 + m), want) << b << " " << m;
      }
    }
  }
}

TEST(ContractionEdges, ElementwiseFunctionsAreWithinTheirTolerance) {
  std::vector<WorkloadSpec> specs;
  for (const char* value : {"gelu($)",
                            "silu($)",
                            "sigmoid($)",
                            "tanh($)",
                            "exp($)",
                            "erf($)",
                            "relu($)",
                            "abs($)",
                            "sqrt(abs($))",
                            "rsqrt(abs($) + 1)",
                            "log(abs($) + 1)",
                            "sin($)",
                            "cos($)",
                            "floor($ * 3)",
                            "ceil($ * 3)",
                            "round($ * 3)",
                            "min($, R[i,j])",
                            "max($, R[i,j])",
                            "$ > 0 ? $ : R[i,j]",
                            "($ < 0 && R[i,j] > 0) ? -$ : $ / (abs(R[i,j]) + 1)",
                            "$^2 + R[i,j]^3",
                            "select(!($ >= 0), 2, $)"}) {
    WorkloadSpec spec = Spec(absl::StrCat("operator P(M,N,K) { input A[M,K], B[K,N], R[M,N]; "
                                          "output C[M,N]; s[i,j] = sum(A[i,k]*B[k,j]);"
                                          " C[i,j] = ",
                                          absl::StrReplaceAll(value, {{"$", "s[i,j]"}}), "; }"),
                             "M=7,N=19,K=3");
    specs.push_back(spec);
    spec.types = *ParseTypes("A=f64,B=f64,R=f64,C=f64");
    specs.push_back(spec);
  }
  ExpectDefaultsAgree(specs, 4e-6, false);
}

TEST(ContractionEdges, NanAndInfinitiesAndSignedZerosPass) {
  const DeviceFingerprint device = TestDevice();
  const Workload workload =
      MakeWorkload(Spec("operator P(M,N,K) { input A[M,K], B[K,N]; output C[M,N]; C[i,j] = "
                        "relu(max(sum(A[i,k]*B[k,j]), -2)); }",
                        "M=4,N=9,K=1"));
  KernelBatch batch;
  ASSERT_TRUE(batch.Add(workload, device, SpaceOf(workload, device)->default_schedule()).ok());
  ASSERT_TRUE(batch.Compile().ok());
  auto inputs = MakeInputs(workload, 1, true);
  const double values[4] = {std::nan(""), INFINITY, -INFINITY, -0.0};
  for (int i = 0; i < 4; ++i) StoreDouble(inputs[0], i, values[i]);
  for (int j = 0; j < 9; ++j) StoreDouble(inputs[1], j, 1);
  auto got = batch.Run(0, inputs, false);
  ASSERT_TRUE(got.ok()) << got.status();
  for (int j = 0; j < 9; ++j) {
    EXPECT_TRUE(std::isnan(LoadAsDouble(*got, j)));
    EXPECT_EQ(LoadAsDouble(*got, 9 + j), INFINITY);
    EXPECT_EQ(LoadAsDouble(*got, 18 + j), 0);
    EXPECT_FALSE(std::signbit(LoadAsDouble(*got, 27 + j)));
  }
}

// One by one, through the interface.
int64_t LegalSettings(const Space& space) {
  const std::vector<Knob>& knobs = space.knobs();
  std::vector<size_t> at(knobs.size(), 0);
  Schedule schedule = space.default_schedule();
  int64_t legal = 0;
  for (size_t i = 0; i < knobs.size();) {
    for (size_t k = 0; k < knobs.size(); ++k)
      schedule.knobs[knobs[k].name] = knobs[k].values[at[k]];
    legal += space.Check(schedule).ok();
    for (i = 0; i < knobs.size() && ++at[i] == knobs[i].values.size(); ++i) at[i] = 0;
  }
  return legal;
}

TEST(ContractionSpace, IsCountedExactlyWhereItSaysSo) {
  const DeviceFingerprint device = TestDevice();
  const auto small = SpaceOf(MakeWorkload(Spec(kMatMul, "M=1,N=1,K=1")), device);
  const int64_t legal = LegalSettings(*small);
  EXPECT_TRUE(small->Count(1'000'000).exact);
  EXPECT_EQ(small->Count(1'000'000).schedules, legal);
  EXPECT_FALSE(small->Count(legal - 1).exact);
  EXPECT_EQ(small->Count(legal - 1).schedules, legal - 1);

  const auto medium = SpaceOf(MakeWorkload(Spec(kMatMul, "M=2,N=3,K=4")), device);
  const SpaceSize estimate = medium->Count(1'000'000'000);
  const double real = static_cast<double>(LegalSettings(*medium));
  EXPECT_FALSE(estimate.exact);
  EXPECT_NEAR(static_cast<double>(estimate.schedules), real, 0.3 * real);

  const auto large = SpaceOf(MakeWorkload(Spec(kMatMul, "M=1024,N=1024,K=1024")), device);
  EXPECT_FALSE(large->Count(1'000'000).exact);
  EXPECT_EQ(large->Count(1'000'000).schedules, 1'000'000);
}

TEST(ContractionSpace, IsNeverEmptyAndItsMovesAreLegal) {
  const DeviceFingerprint device = TestDevice();
  for (const char* dims : {"M=1,N=1,K=1", "M=127,N=8191,K=3", "M=10,N=500,K=64",
                           "M=130,N=293,K=237", "M=0,N=7,K=1", "M=2043,N=2043,K=2043"}) {
    const Workload workload = MakeWorkload(Spec(kMatMul, dims));
    const auto space = SpaceOf(workload, device);
    EXPECT_TRUE(space->Check(space->default_schedule()).ok()) << dims;
    EXPECT_GE(space->Count(20).schedules, 1) << dims;
    for (uint64_t seed = 0; seed < 20; ++seed) {
      const Schedule sample = space->Sample(seed);
      ASSERT_TRUE(space->Check(sample).ok()) << Print(sample);
      EXPECT_EQ(sample, space->Sample(seed));
      for (const Schedule& next : space->Neighbours(sample))
        ASSERT_TRUE(space->Check(next).ok()) << Print(next);
    }
  }
}

TEST(ContractionSpace, SaysWhichLimitAScheduleBreaks) {
  const DeviceFingerprint device = TestDevice();
  const Workload workload = MakeWorkload(Spec(kMatMul, "M=512,N=512,K=512"));
  const auto space = SpaceOf(workload, device);
  Schedule schedule = space->default_schedule();
  schedule.knobs["mr"] = 8;
  schedule.knobs["nv"] = 8;
  const absl::Status registers = space->Check(schedule);
  EXPECT_EQ(registers.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_NE(registers.message().find("vector registers"), std::string::npos) << registers;
  schedule.knobs["mr"] = 9999;
  EXPECT_EQ(space->Check(schedule).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Emit(workload, device, schedule).status().code(),
            absl::StatusCode::kFailedPrecondition);
}

TEST(Literals, AreExactInAnyLocale) {
  const char* before = std::setlocale(
      LC_NUMERIC, "de_DE.UTF-8");  // may be absent: then this is the C locale, and as right
  (void)before;
  EXPECT_EQ(emit::FloatLiteral(DType::kF32, 0.1), "0xcccccdp-27f");
  EXPECT_EQ(emit::FloatLiteral(DType::kF64, 0.1), "0xccccccccccccdp-55");
  EXPECT_EQ(emit::FloatLiteral(DType::kF32, 1e-45), "0x1p-149f");
  EXPECT_EQ(emit::FloatLiteral(DType::kF32, std::numeric_limits<float>::max()), "0xffffffp104f");
  EXPECT_EQ(emit::FloatLiteral(DType::kF32, -INFINITY), "-__builtin_inff()");
  EXPECT_EQ(emit::FloatLiteral(DType::kF64, std::nan("")), "__builtin_nan(\"\")");
  EXPECT_EQ(emit::FloatLiteral(DType::kF32, -0.0), "-0x0p+0f");
  std::setlocale(LC_NUMERIC, "C");
}

TEST(Emission, IndexesAreAsWideAsOffsetsNeedAndNoWider) {
  const DeviceFingerprint device = TestDevice();
  WorkloadSpec spec = Spec(kMatMul, "M=3,N=16,K=8");
  const Workload narrow = MakeWorkload(spec);
  EXPECT_NE(Emit(narrow, device, SpaceOf(narrow, device)->default_schedule())
                ->source.find("typedef int index"),
            std::string::npos);
  spec.strides = *ParseStrides("A=300000000:1");  // 2 * 3e8 * 4 bytes, beyond 2^31
  const Workload wide = MakeWorkload(spec);
  EXPECT_NE(Emit(wide, device, SpaceOf(wide, device)->default_schedule())
                ->source.find("typedef long long index"),
            std::string::npos);
}

}  // namespace
}  // namespace kiln::compiler
