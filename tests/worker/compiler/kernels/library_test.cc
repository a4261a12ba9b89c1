// SPDX-License-Identifier: Apache-2.0
// The schedule library/1 for real: emitted, loaded by the runtime, launched in guarded memory and
// judged by the compiled reference on every set of inputs; and what the library cannot take is
// refused with the reason.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/runtime/kiln_runtime.h"
#include "client/runtime/sha256.h"
#include "tests/worker/compiler/kernels/harness.h"
#include "tests/worker/verify/compiled_reference.h"
#include "worker/compiler/compiler.h"
#include "worker/verify/verify.h"

namespace kiln::compiler {
namespace {

const Schedule kLibrary{"library", 1, {}};

struct Case {
  std::string operands;  // declarations besides types
  std::string value;     // of the output C
  std::string dims;
  std::string strides, alias;
  bool is_double = false;
};

Workload WorkloadOf(const Case& c) {
  WorkloadSpec spec;
  const std::string type = c.is_double ? "f64" : "f32";
  spec.program = absl::StrCat("operator P(", c.dims.find("B=") == 0 ? "B, " : "",
                              "M, N, K) { input ", c.operands, "; ", c.value, "; }");
  spec.dims = *ParseDims(c.dims);
  spec.strides = *ParseStrides(c.strides);
  spec.alias = *ParseAlias(c.alias);
  if (c.is_double) {
    spec.types = *ParseTypes("A=f64,X=f64,C=f64");
    if (c.operands.find("R[") != std::string::npos) spec.types["R"] = DType::kF64;
    if (c.operands.find("v[") != std::string::npos) spec.types["v"] = DType::kF64;
  }
  return MakeWorkload(spec);
}

// All transpositions of both operands and the output, in both types; batches that share an operand;
// leading dims beyond a row; vectors; every kind of epilogue.
std::vector<Case> Cases() {
  std::vector<Case> cases;
  for (bool is_double : {false, true}) {
    for (const char* a : {"A[M,K]", "A[K,M]"}) {
      for (const char* x : {"X[K,N]", "X[N,K]"}) {
        for (bool transposed : {false, true}) {
          cases.push_back(
              {absl::StrCat(a, ", ", x),
               absl::StrCat(transposed ? "output C[N,M]; C[j,i]" : "output C[M,N]; C[i,j]",
                            " = sum(A[", a[2] == 'M' ? "i,k" : "k,i", "] * X[",
                            x[2] == 'K' ? "k,j" : "j,k", "])"),
               "M=37,N=29,K=41", "", "", is_double});
        }
      }
    }
  }
  const std::string product = "sum(A[i,k] * X[k,j])";
  const std::string c = "output C[M,N]; C[i,j] = ";
  for (const char* dims : {"M=1,N=33,K=17", "M=33,N=1,K=17", "M=1,N=1,K=50", "M=3,N=5,K=1"})
    cases.push_back({"A[M,K], X[K,N]", c + product, dims});
  cases.push_back({"A[M,K], X[K,N]", c + product, "M=14,N=19,K=23", "A=40:1,X=25:1,C=21:1"});
  cases.push_back({"A[M,K], X[K,N]", c + product, "M=14,N=19,K=23", "A=1:40,X=1:25,C=1:16"});
  cases.push_back({"A[M,K], X[K,N], v[N]", c + product + " + v[j]", "M=21,N=45,K=34"});
  cases.push_back({"A[M,K], X[K,N], v[M]", c + "relu(" + product + " * 0.5 + v[i])",
                   "M=130,N=7,K=34", "", "", true});
  cases.push_back({"A[M,K], X[K,N], v[N], R[M,N]", c + "gelu(" + product + " + v[j]) + R[i,j]",
                   "M=21,N=45,K=34", "R=1:25"});
  cases.push_back(
      {"A[M,K], X[K,N], R[M,N]", c + "silu(" + product + ") * R[i,j]", "M=64,N=64,K=8", "", "C=R"});
  const std::string batch = "output C[B,M,N]; C[b,i,j] = ";
  for (const char* dims : {"B=3,M=12,N=18,K=20", "B=40,M=5,N=9,K=7", "B=1,M=6,N=7,K=8"}) {
    cases.push_back({"A[B,M,K], X[B,K,N]", batch + "sum(A[b,i,k] * X[b,k,j])", dims, "", "", true});
    cases.push_back(
        {"A[B,M,K], X[B,N,K], v[N]", batch + "tanh(sum(A[b,i,k] * X[b,j,k]) + v[j])", dims});
    cases.push_back({"A[M,K], X[B,K,N]", batch + "sum(A[i,k] * X[b,k,j])", dims});
  }
  return cases;
}

// The emission's source as a shared object; empty if the compiler refuses it.
std::string CompileShared(const Emission& emission) {
  std::string folder = (std::filesystem::temp_directory_path() / "kiln-library-XXXXXX").string();
  if (mkdtemp(folder.data()) == nullptr) return "";
  std::ofstream(folder + "/source.cc") << emission.source;
  const std::string command = absl::StrCat("c++ ", absl::StrJoin(emission.flags, " "),
                                           " -Wall -Wextra -Werror -shared -fPIC ", folder,
                                           "/source.cc -o ", folder, "/code.so");
  std::string bytes;
  if (std::system(command.c_str()) == 0) {
    std::ifstream file(folder + "/code.so", std::ios::binary);
    bytes.assign(std::istreambuf_iterator<char>(file), {});
  }
  std::filesystem::remove_all(folder);
  return bytes;
}

int GiveCode(void* context, const char*, const void** bytes, size_t* size) {
  const std::string& code = *static_cast<const std::string*>(context);
  *bytes = code.data(), *size = code.size();
  return 0;
}

using PlanPtr = std::unique_ptr<kiln_plan, void (*)(kiln_plan*)>;
using PoolPtr = std::unique_ptr<kiln_pool, void (*)(kiln_pool*)>;

PoolPtr MakePool(int threads) {
  kiln_pool* pool = nullptr;
  EXPECT_EQ(kiln_pool_create(threads, 0, &pool), KILN_OK) << kiln_error();
  return PoolPtr(pool, kiln_pool_destroy);
}

PlanPtr Load(const Workload& workload) {
  absl::StatusOr<Emission> emission = Emit(workload, TestDevice(), kLibrary);
  EXPECT_TRUE(emission.ok()) << emission.status();
  if (!emission.ok()) return PlanPtr(nullptr, kiln_plan_destroy);
  std::string code;
  for (kiln::Step& step : emission->plan.steps) {
    if (step.kind == StepKind::kLibrary) continue;
    if (code.empty()) code = CompileShared(*emission);
    step.artifact = runtime::Sha256Hex(code.data(), code.size());
  }
  EXPECT_EQ(emission->plan.steps[0].kind, StepKind::kLibrary);
  const std::string text = PrintPlan(emission->plan);
  kiln_plan* plan = nullptr;
  EXPECT_EQ(kiln_plan_load(text.data(), text.size(), GiveCode, &code, &plan), KILN_OK)
      << kiln_error();
  return PlanPtr(plan, kiln_plan_destroy);
}

TEST(LibraryPlan, GivesWhatTheReferenceDoesThroughTheRuntime) {
  if (kiln_library_identity("openblas") == nullptr) GTEST_SKIP() << kiln_error();
  const std::vector<Case> cases = Cases();
  std::vector<Workload> workloads;
  for (const Case& c : cases) workloads.push_back(WorkloadOf(c));
  const std::vector<verify::Reference> references = verify::CompileReferences(workloads);
  ASSERT_EQ(references.size(), workloads.size());
  const PoolPtr alone = MakePool(1), two = MakePool(2);
  size_t direct = 0;
  for (size_t i = 0; i < cases.size(); ++i) {
    SCOPED_TRACE(absl::StrCat(cases[i].operands, " ", cases[i].value, " ", cases[i].dims, " ",
                              cases[i].strides));
    const PlanPtr plan = Load(workloads[i]);
    ASSERT_NE(plan, nullptr);
    const int64_t bytes = kiln_plan_workspace_bytes(plan.get());
    direct += bytes == 0;
    std::vector<char> memory(bytes + 64);
    char* workspace = memory.data() + (64 - reinterpret_cast<uintptr_t>(memory.data()) % 64) % 64;
    verify::ReferenceCache cache(workloads[i], references[i], {.seed = 11, .threads = 1});
    for (kiln_pool* pool : {alone.get(), two.get()}) {
      auto result = verify::VerifyPlan(
          workloads[i], cache,
          [&](const std::vector<void*>& tensors) -> absl::Status {
            if (kiln_plan_launch(plan.get(), pool, tensors.data(), workspace, nullptr) != KILN_OK)
              return absl::InternalError(kiln_error());
            return absl::OkStatus();
          },
          verify::Depth::kFull);
      ASSERT_TRUE(result.ok()) << result.status();
      EXPECT_TRUE(result->ok()) << result->reason;
      EXPECT_EQ(result->verification.sets, 6);
    }
  }
  // Both ways were taken: straight into the output, and through a workspace with an epilogue.
  EXPECT_GT(direct, 10);
  EXPECT_GT(cases.size() - direct, 5);
}

void ExpectRefused(const WorkloadSpec& spec, const std::string& reason) {
  const absl::Status status = Emit(MakeWorkload(spec), TestDevice(), kLibrary).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
  EXPECT_NE(std::string(status.message()).find(reason), std::string::npos) << status;
}

WorkloadSpec Product(const std::string& dims, const std::string& strides = "") {
  WorkloadSpec spec;
  spec.program =
      "operator P(M,N,K) { input A[M,K], X[K,N]; output C[M,N]; C[i,j] = sum(A[i,k]*X[k,j]); }";
  spec.dims = *ParseDims(dims);
  spec.strides = *ParseStrides(strides);
  return spec;
}

TEST(LibraryPlan, RefusesWhatTheRoutineCannotTake) {
  ExpectRefused(Product("M=4,N=5,K=6", "A=13:2"), "A has strides 13 and 2");
  ExpectRefused(Product("M=4,N=5,K=6", "X=2:16"), "B has strides 2 and 16");
  ExpectRefused(Product("M=4,N=5,K=6", "A=0:1"), "A has strides 0 and 1");
  ExpectRefused(Product("M=4,N=5,K=6", "A=3:1"), "A has strides 3 and 1");
  ExpectRefused(Product("M=2,N=5,K=6", "A=3000000000:1"), "A has strides 3000000000 and 1");
  ExpectRefused(Product("M=4,N=5,K=0"), "nothing to sum");
  ExpectRefused(Product("M=3000000000,N=1,K=2"), "does not fit the routine's 32 bits");

  WorkloadSpec spec = Product("M=4,N=5,K=6");
  spec.program =
      "operator P(M,N,K) { input A[M,N,K], X[N,M,K]; output C[M,N] = sum(A[i,j,k]*X[j,i,k]); }";
  ExpectRefused(spec, "one batch axis");
  spec.program =
      "operator P(M,N,K) { input A[M,K,N], X[N,K]; output C[M]; C[i] = sum(A[i,k,l]*X[l,k]); }";
  ExpectRefused(spec, "one axis to sum over");
}

TEST(LibraryPlan, RefusesWhatThePolicyForbids) {
  WorkloadSpec spec = Product("M=4,N=5,K=6");
  spec.policy.library = false;
  ExpectRefused(spec, "library=no");
  spec.policy.library = true;
  spec.policy.fixed_order = true;
  ExpectRefused(spec, "order=fixed");
}

TEST(LibraryPlan, OfAnEmptyOutputHasNoSteps) {
  auto emission = Emit(MakeWorkload(Product("M=0,N=5,K=6")), TestDevice(), kLibrary);
  ASSERT_TRUE(emission.ok()) << emission.status();
  EXPECT_TRUE(emission->plan.steps.empty());
}

}  // namespace
}  // namespace kiln::compiler
