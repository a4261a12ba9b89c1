// SPDX-License-Identifier: Apache-2.0
// Every legal schedule gives a right kernel: schedules sampled from the spaces of odd shapes, run
// forwards and backwards, against the interpreter.
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "tests/worker/compiler/kernels/harness.h"
#include "worker/compiler/analysis/interpreter.h"
#include "worker/compiler/families/family.h"

namespace kiln::compiler {
namespace {

struct Case {
  std::string name;
  WorkloadSpec spec;
  int samples = 3;
  bool integers = true;  // exact: the epilogue keeps small integers
  double tolerance = 0;
};

WorkloadSpec Spec(const std::string& program, const std::string& dims) {
  WorkloadSpec spec;
  spec.program = program;
  spec.dims = *ParseDims(dims);
  return spec;
}

constexpr char kMatMul[] =
    "operator P(M,N,K) { input A[M,K], B[K,N]; output C[M,N]; C[i,j] = sum(A[i,k]*B[k,j]); }";
constexpr char kBothTransposed[] =
    "operator P(M,N,K) { input A[K,M], B[N,K]; output C[M,N]; C[i,j] = sum(A[k,i]*B[j,k]); }";
constexpr char kDots[] =
    "operator P(M,N,K) { input A[M,K], B[N,K]; output C[M,N]; C[i,j] = sum(A[i,k]*B[j,k]); }";
constexpr char kStoredTransposed[] =
    "operator P(M,N,K) { input A[M,K], B[K,N]; output C[N,M]; C[j,i] = sum(A[i,k]*B[k,j]); }";
constexpr char kBatched[] =
    "operator P(B,M,N,K) { input A[B,M,K], X[B,K,N]; output C[B,M,N]; C[b,i,j] = "
    "sum(A[b,i,k]*X[b,k,j]); }";
constexpr char kConstant[] =
    "operator P(M,N,K) { input A[M,K]; constant B[K,N]; output C[M,N]; C[i,j] = "
    "sum(A[i,k]*B[k,j]); }";
constexpr char kLayer[] =
    "operator P(M,N,K) { input A[M,K], B[K,N], bias[N], R[M,N]; output C[M,N];"
    " C[i,j] = gelu(sum(A[i,k]*B[k,j]) * 0.125 + bias[j]) + R[i,j]; }";
constexpr char kInPlace[] =
    "operator P(M,N,K) { input A[M,K], B[K,N], R[M,N]; output C[M,N]; C[i,j] = "
    "relu(sum(A[i,k]*B[k,j]) + R[i,j]); }";
constexpr char kOneByOne[] =
    "operator P(N,C,H,K) { input x[N,C,H], w[K,C]; output y[N,K,H]; y[n,k,h] = "
    "max(sum(x[n,c,h]*w[k,c]), -3); }";
constexpr char kTwoSums[] =
    "operator P(M,N,K,L) { input A[M,K,L], B[L,N,K]; output C[M,N]; C[i,j] = "
    "sum(A[i,k,l]*B[l,j,k]) / 2; }";

std::vector<Case> Cases() {
  std::vector<Case> cases;
  for (const char* dims : {"M=1,N=1,K=1", "M=7,N=13,K=5", "M=17,N=33,K=40", "M=40,N=31,K=65",
                           "M=65,N=64,K=33", "M=1,N=37,K=70", "M=43,N=1,K=70"}) {
    cases.push_back({absl::StrCat("matmul ", dims), Spec(kMatMul, dims)});
  }
  cases.push_back({"transposed", Spec(kBothTransposed, "M=19,N=41,K=37"), 4});
  cases.push_back({"dots", Spec(kDots, "M=5,N=23,K=67"), 4});
  cases.push_back({"matrix by vector", Spec(kDots, "M=29,N=1,K=131"), 3});
  cases.push_back({"stored transposed", Spec(kStoredTransposed, "M=33,N=18,K=29"), 4});
  cases.push_back({"batched", Spec(kBatched, "B=5,M=9,N=17,K=21"), 4});
  cases.push_back({"batch of vectors", Spec(kBatched, "B=37,M=25,N=1,K=4"), 3});
  cases.push_back({"constant", Spec(kConstant, "M=23,N=35,K=50"), 4});
  cases.push_back({"two sums", Spec(kTwoSums, "M=11,N=21,K=7,L=9"), 4});
  cases.push_back({"one by one", Spec(kOneByOne, "N=3,C=18,H=25,K=14"), 4});
  cases.push_back({"layer", Spec(kLayer, "M=21,N=45,K=34"), 4, false, 2e-5});
  Case in_place{"in place", Spec(kInPlace, "M=22,N=27,K=90"), 5};
  in_place.spec.alias = *ParseAlias("C=R");
  cases.push_back(in_place);
  Case strided{"strided", Spec(kMatMul, "M=14,N=19,K=23"), 4};
  strided.spec.strides = *ParseStrides("A=40:1,B=2:60,C=25:1");
  cases.push_back(strided);
  Case repeated{"repeated rows", Spec(kMatMul, "M=14,N=19,K=23"), 3};
  repeated.spec.strides = *ParseStrides("A=0:1,B=0:1");
  cases.push_back(repeated);
  Case doubles{"f64", Spec(kMatMul, "M=31,N=22,K=47"), 4};
  doubles.spec.types = *ParseTypes("A=f64,B=f64,C=f64");
  cases.push_back(doubles);
  Case fixed{"fixed order", Spec(kMatMul, "M=31,N=22,K=147"), 4};
  fixed.spec.policy.fixed_order = true;
  cases.push_back(fixed);
  return cases;
}

TEST(ContractionKernels, AgreeWithTheInterpreterForSampledSchedules) {
  const DeviceFingerprint device = TestDevice();
  KernelBatch batch;
  struct Trial {
    int kernel;
    const Case* of;
    std::string schedule;
  };
  const std::vector<Case> cases = Cases();
  std::vector<Trial> trials;
  for (const Case& of : cases) {
    const Workload workload = MakeWorkload(of.spec);
    auto family = MatchFamily(workload, device, nullptr);
    ASSERT_TRUE(family.ok()) << of.name << ": " << family.status();
    auto space = (*family)->MakeSpace(workload, device);
    ASSERT_TRUE(space.ok()) << space.status();
    for (int i = 0; i <= of.samples; ++i) {
      const Schedule schedule =
          i == 0 ? (*space)->default_schedule() : (*space)->Sample(1000 * trials.size() + i);
      auto kernel = batch.Add(workload, device, schedule);
      ASSERT_TRUE(kernel.ok()) << of.name << " " << Print(schedule) << ": " << kernel.status();
      trials.push_back({*kernel, &of, Print(schedule)});
    }
  }
  const absl::Status compiled = batch.Compile();
  ASSERT_TRUE(compiled.ok()) << compiled;
  const Case* last = nullptr;
  std::vector<HostTensor> inputs, want;
  for (const Trial& trial : trials) {
    if (trial.of != last) {
      const Workload workload = MakeWorkload(trial.of->spec);
      inputs = MakeInputs(workload, 7, trial.of->integers);
      auto interpreted = Interpret(workload, inputs, Arithmetic::kDouble);
      ASSERT_TRUE(interpreted.ok()) << interpreted.status();
      want = *interpreted;
      last = trial.of;
    }
    for (bool backwards : {false, true}) {
      auto got = batch.Run(trial.kernel, inputs, backwards);
      ASSERT_TRUE(got.ok()) << trial.of->name << " " << trial.schedule << ": " << got.status()
                            << "\n"
                            << batch.source(trial.kernel);
      ASSERT_LE(LargestError(*got, want[0]), trial.of->tolerance)
          << trial.of->name << " " << trial.schedule << "\n"
          << batch.source(trial.kernel);
    }
  }
}

TEST(ContractionKernels, KeepTheirBitsUnderAFixedOrder) {
  const DeviceFingerprint device = TestDevice();
  WorkloadSpec spec = Spec(kMatMul, "M=19,N=37,K=200");
  spec.policy.fixed_order = true;
  const Workload workload = MakeWorkload(spec);
  auto family = MatchFamily(workload, device, nullptr);
  ASSERT_TRUE(family.ok()) << family.status();
  auto space = (*family)->MakeSpace(workload, device);
  ASSERT_TRUE(space.ok()) << space.status();
  KernelBatch batch;
  std::vector<std::string> schedules;
  for (int i = 0; i < 12; ++i) {
    const Schedule schedule = i == 0 ? (*space)->default_schedule() : (*space)->Sample(i);
    ASSERT_TRUE(batch.Add(workload, device, schedule).ok());
    schedules.push_back(Print(schedule));
  }
  const absl::Status compiled = batch.Compile();
  ASSERT_TRUE(compiled.ok()) << compiled;
  const std::vector<HostTensor> inputs = MakeInputs(workload, 3, false);
  auto first = batch.Run(0, inputs, false);
  ASSERT_TRUE(first.ok()) << first.status();
  for (int i = 1; i < 12; ++i) {
    auto got = batch.Run(i, inputs, false);
    ASSERT_TRUE(got.ok()) << got.status();
    EXPECT_EQ(got->bytes, first->bytes) << schedules[0] << "\n" << schedules[i];
  }
}

}  // namespace
}  // namespace kiln::compiler
