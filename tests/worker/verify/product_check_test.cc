// SPDX-License-Identifier: Apache-2.0
// Products too large for a reference: right kernels pass, and one wrong element, a wrong tail or a
// dropped term is found.
#include "worker/verify/product_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "tests/worker/compiler/analysis/programs.h"
#include "worker/compiler/analysis/interpreter.h"
#include "worker/verify/verify.h"

namespace kiln::verify {
namespace {

using compiler::HostTensor;
using ::testing::HasSubstr;

constexpr char kProduct[] =
    "operator P(M,N,K) { input A[M,K], B[K,N]; output C[M,N]; C[i,j] = sum(A[i,k] * B[k,j]); }";
constexpr char kBatched[] =
    "operator P(B,M,N,K) { input A[B,K,M]; constant X[N,K]; output C[B,N,M]; "
    "C[b,j,i] = sum(A[b,k,i] * X[j,k]); }";

Workload Make(const char* text, const char* dims, const char* types = "", const char* strides = "",
              const char* policy = "") {
  auto workload = compiler::Check({"", text, dims, types, strides, policy});
  EXPECT_TRUE(workload.ok()) << workload.status();
  return *workload;
}

std::vector<Workload> Workloads() {
  return {Make(kProduct, "M=9,N=17,K=23"), Make(kProduct, "M=9,N=17,K=23", "A=f64,B=f64,C=f64"),
          Make(kProduct, "M=1,N=40,K=31"),
          Make(kProduct, "M=12,N=7,K=64", "", "A=1:14,B=9:1,C=1:13"),
          Make(kBatched, "B=3,M=8,N=11,K=19")};
}

// Of the e-th element in row-major order.
int64_t OffsetOf(const HostTensor& tensor, int64_t e) {
  int64_t offset = 0;
  for (size_t d = tensor.shape.size(); d-- > 0; e /= tensor.shape[d])
    offset += e % tensor.shape[d] * tensor.strides[d];
  return offset;
}

// A kernel that follows the language, then what `damage` does to its output.
template <typename Damage>
VerifyResult Try(const Workload& workload, const Damage& damage) {
  const auto unasked = [](const void* const*, double* const*, double* const*, int) { return 2; };
  ReferenceCache cache(workload, unasked, {.seed = 5, .slow_terms = 0});
  const auto launch = [&](const std::vector<void*>& pointers) {
    std::vector<HostTensor> inputs;
    size_t at = 0;
    for (const Tensor& tensor : workload.graph.tensors) {
      if (tensor.kind == TensorKind::kTemporary) continue;
      HostTensor value = compiler::MakeHostTensor(workload.graph, tensor, 0);
      std::memcpy(value.bytes.data(), pointers[at++], value.bytes.size());
      if (tensor.kind != TensorKind::kOutput) inputs.push_back(std::move(value));
    }
    auto outputs = compiler::Interpret(workload, inputs, compiler::Arithmetic::kAsSpecified);
    EXPECT_TRUE(outputs.ok()) << outputs.status();
    HostTensor& c = (*outputs)[0];
    damage(c);
    // Element by element: padding stays as it is.
    auto* out = static_cast<uint8_t*>(pointers.back());
    const size_t size = Bits(c.type) / 8;
    const HostTensor place =
        compiler::MakeHostTensor(workload.graph, workload.graph.tensors.back(), 0);
    for (int64_t e = 0; e < c.elements(); ++e)
      std::memcpy(out + OffsetOf(place, e) * size, c.bytes.data() + OffsetOf(c, e) * size, size);
    return absl::OkStatus();
  };
  auto result = VerifyPlan(workload, cache, launch, Depth::kFull);
  EXPECT_TRUE(result.ok()) << result.status();
  return result.ok() ? *result : VerifyResult{};
}

TEST(ProductCheck, PassesRightKernelsOnEverySet) {
  for (const Workload& workload : Workloads()) {
    const VerifyResult result = Try(workload, [](HostTensor&) {});
    EXPECT_TRUE(result.ok()) << result.reason;
    EXPECT_EQ(result.verification.sets, 6);
    EXPECT_EQ(result.verification.method, "freivalds/1");
    EXPECT_LE(result.verification.max_error, 1);
  }
}

TEST(ProductCheck, FindsOneWrongElementWhereverItIs) {
  for (const Workload& workload : Workloads()) {
    const int64_t count =
        compiler::MakeHostTensor(workload.graph, workload.graph.tensors.back(), 0).elements();
    for (int64_t at = 0; at < count; at += 1 + count / 50) {
      const VerifyResult result = Try(workload, [&](HostTensor& c) {
        compiler::StoreDouble(c, OffsetOf(c, at), compiler::LoadAsDouble(c, OffsetOf(c, at)) + 1);
      });
      EXPECT_EQ(result.stage, Stage::kMismatch) << at;
      EXPECT_THAT(result.reason, HasSubstr("small-integer"));
    }
  }
}

// 2000 x 300 elements: no sample of 512 can be relied upon to meet one of them.
TEST(ProductCheck, FindsOneWrongElementInAMillion) {
  const Workload workload = Make(kProduct, "M=2000,N=300,K=3");
  const auto check = ProductCheck::Find(workload, 0);
  ASSERT_TRUE(check.has_value());
  const std::vector<HostTensor> inputs = MakeInputs(workload, SetKind::kSmallInteger, 1);
  HostTensor c = MakeOutput(workload, 0, 0);
  for (int i = 0; i < 2000; ++i) {
    for (int j = 0; j < 300; ++j) {
      double sum = 0;
      for (int k = 0; k < 3; ++k)
        sum += compiler::LoadAsDouble(inputs[0], i * 3 + k) *
               compiler::LoadAsDouble(inputs[1], k * 300 + j);
      compiler::StoreDouble(c, i * 300 + j, sum);
    }
  }
  EXPECT_TRUE(check->Judge(inputs, c, true, 1).right);
  for (int at : {0, 77'777, 599'999}) {
    HostTensor wrong = c;
    compiler::StoreDouble(wrong, at, compiler::LoadAsDouble(c, at) - 1);
    const Verdict verdict = check->Judge(inputs, wrong, true, 1);
    EXPECT_FALSE(verdict.right) << at;
    EXPECT_THAT(verdict.reason, HasSubstr("C"));
  }
  HostTensor swapped = c;  // two elements of a row, exchanged
  compiler::StoreDouble(swapped, 151, compiler::LoadAsDouble(c, 152));
  compiler::StoreDouble(swapped, 152, compiler::LoadAsDouble(c, 151));
  if (compiler::LoadAsDouble(c, 151) != compiler::LoadAsDouble(c, 152)) {
    EXPECT_FALSE(check->Judge(inputs, swapped, true, 1).right);
  }
}

TEST(ProductCheck, FindsAWrongTail) {
  for (const Workload& workload : Workloads()) {
    const VerifyResult result = Try(workload, [](HostTensor& c) {
      const int64_t columns = c.shape.back();
      for (int64_t e = columns - 1; e < c.elements(); e += columns)
        compiler::StoreDouble(c, OffsetOf(c, e), 0);
    });
    EXPECT_EQ(result.stage, Stage::kMismatch);
  }
}

TEST(ProductCheck, FindsNumbersWhereNanIsDue) {
  const VerifyResult result = Try(Workloads()[0], [](HostTensor& c) {
    for (int64_t e = 0; e < c.elements(); ++e) {
      if (std::isnan(compiler::LoadAsDouble(c, e))) compiler::StoreDouble(c, e, 0);
    }
  });
  EXPECT_EQ(result.stage, Stage::kMismatch);
  EXPECT_THAT(result.reason, HasSubstr("non-finite"));
}

TEST(ProductCheck, IsForSlowProductsAlone) {
  EXPECT_FALSE(ProductCheck::Find(Make(kProduct, "M=9,N=17,K=23"), 9 * 17 * 23).has_value());
  EXPECT_TRUE(ProductCheck::Find(Make(kProduct, "M=9,N=17,K=23"), 9 * 17 * 23 - 1).has_value());
  EXPECT_TRUE(ProductCheck::Find(Make(kProduct, "M=4096,N=4096,K=4096"), kSlowTerms).has_value());
  EXPECT_FALSE(ProductCheck::Find(Make(kProduct, "M=2048,N=2048,K=2048"), kSlowTerms).has_value());
  EXPECT_FALSE(ProductCheck::Find(Make("operator P(M,N,K) { input A[M,K], B[K,N]; output C[M,N]; "
                                       "C[i,j] = relu(sum(A[i,k] * B[k,j])); }",
                                       "M=9,N=17,K=23"),
                                  0)
                   .has_value());
  EXPECT_FALSE(ProductCheck::Find(Make(kProduct, "M=9,N=17,K=23", "", "", "tf32"), 0).has_value());
}

}  // namespace
}  // namespace kiln::verify
