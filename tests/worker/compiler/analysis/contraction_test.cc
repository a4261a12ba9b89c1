// SPDX-License-Identifier: Apache-2.0
#include "worker/compiler/analysis/contraction.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/worker/compiler/analysis/programs.h"

namespace kiln::compiler {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

absl::StatusOr<ContractionForm> Match(const char* text, const char* dims, const char* types = "",
                                      const char* strides = "", const char* policy = "") {
  auto workload = Check({"", text, dims, types, strides, policy});
  if (!workload.ok()) return workload.status();
  return MatchContraction(*workload);
}

std::string Refusal(const char* text, const char* dims, const char* types = "") {
  auto form = Match(text, dims, types);
  if (form.ok()) return "matched";
  EXPECT_EQ(form.status().code(), absl::StatusCode::kUnimplemented) << form.status();
  return std::string(form.status().message());
}

constexpr char kDims[] = "M=5,N=7,K=3";

TEST(Contraction, SpellingsOfOneProductAgree) {
  const char* spellings[] = {
      "operator P(M,N,K) { input A[M,K], B[K,N]; output C[M,N] = sum(A[i,k] * B[k,j]); }",
      "operator P(M,N,K) { input A[M,K], B[K,N]; output C[M,N]; C[p,q] = sum(A[p,r] * B[r,q]); }",
      "operator P(M,N,K) { input A[M,K], B[K,N]; output C[M,N]; C[i,j] = sum(k in 0..K: A[i,k] * "
      "B[k,j]); }",
      "operator P(M,N,K) { input A[M,K], B[K,N]; output C[M,N]; C[i,j] = sum(A[i,k] * B[k,j] over "
      "[k]); }",
      "operator P(M,N,K) { input A[M,K], B[K,N]; output C[M,N]; C = sum(A * B over [K]); }",
      "operator P(M,N,K) { input A[M,K], B[K,N]; output C[M,N]; t = A * B; C = sum(t over [K]); }",
  };
  for (const char* text : spellings) {
    SCOPED_TRACE(text);
    auto form = Match(text, kDims);
    ASSERT_TRUE(form.ok()) << form.status();
    EXPECT_TRUE(form->trivial_epilogue);
    EXPECT_EQ(form->a, 0);
    EXPECT_EQ(form->b, 1);
    EXPECT_EQ(form->M(), 5);
    EXPECT_EQ(form->N(), 7);
    EXPECT_EQ(form->K(), 3);
    EXPECT_EQ(form->m[0].a, 3);
    EXPECT_EQ(form->k[0].b, 7);
    EXPECT_EQ(form->n[0].c, 1);
  }
}

TEST(Contraction, TakesTheFactorsInEitherOrder) {
  auto form = Match(
      "operator P(M,N,K) { input B[K,N], A[M,K]; output C[M,N]; C[i,j] = sum(B[k,j] * A[i,k]); }",
      kDims);
  ASSERT_TRUE(form.ok()) << form.status();
  EXPECT_EQ(form->a, 1);
  EXPECT_EQ(form->b, 0);
}

TEST(Contraction, FollowsTranspositionsAndStrides) {
  auto form = Match(
      "operator P(M,N,K) { input A[K,M], B[N,K]; output C[M,N]; C[i,j] = sum(A[k,i] * B[j,k]); }",
      kDims, "", "A=8:1,C=10:1");
  ASSERT_TRUE(form.ok()) << form.status();
  EXPECT_EQ(form->m[0].a, 1);
  EXPECT_EQ(form->k[0].a, 8);
  EXPECT_EQ(form->k[0].b, 1);
  EXPECT_EQ(form->n[0].b, 3);
  EXPECT_EQ(form->m[0].c, 10);
}

TEST(Contraction, FindsBatchAxesAndFusesWhatOneStrideWalks) {
  auto form = Match(
      "operator P(B,H,M,N,K) { input x[B,H,M,K], y[B,H,K,N]; output z[B,H,M,N]; "
      "z[b,h,i,j] = sum(x[b,h,i,k] * y[b,h,k,j]); }",
      "B=2,H=3,M=5,N=7,K=4");
  ASSERT_TRUE(form.ok()) << form.status();
  ASSERT_EQ(form->batch.size(), 1u);
  EXPECT_EQ(form->Batch(), 6);
  EXPECT_EQ(form->batch[0].a, 20);
  EXPECT_EQ(form->batch[0].c, 35);
}

TEST(Contraction, FusesTheAxesOfAOneByOneConvolution) {
  auto form = Match(
      "operator P(N,H,W,C,K) { input x[N,H,W,C]; constant w[C,K]; output y[N,H,W,K]; "
      "y[n,h,w1,k] = sum(x[n,h,w1,c] * w[c,k]); }",
      "N=2,H=3,W=4,C=5,K=6");
  ASSERT_TRUE(form.ok()) << form.status();
  EXPECT_EQ(form->m.size(), 1u);
  EXPECT_EQ(form->M(), 24);
  EXPECT_TRUE(form->b_constant);
}

TEST(Contraction, MatrixVectorProductsHaveNoRows) {
  auto form = Match(
      "operator P(M,K) { input A[M,K], x[K]; output y[M]; y[i] = sum(A[i,k] * x[k]); }", "M=5,K=3");
  ASSERT_TRUE(form.ok()) << form.status();
  EXPECT_TRUE(form->m.empty());
  EXPECT_EQ(form->N(), 5);
  EXPECT_EQ(form->n[0].b, 3);
  auto dot =
      Match("operator P(K) { input x[K], y[K]; output z[]; z[] = sum(x[k] * y[k]); }", "K=3");
  ASSERT_TRUE(dot.ok()) << dot.status();
  EXPECT_TRUE(dot->m.empty() && dot->n.empty());
  EXPECT_EQ(dot->K(), 3);
}

TEST(Contraction, FusesEpiloguesOfEveryKind) {
  auto form = Match(
      "operator P(M,N,K) { input A[M,K], B[K,N], bias[N], scale[M], r[M,N]; output C[M,N]; "
      "t[i,j] = sum(A[i,k] * B[k,j]); C[i,j] = r[i,j] > 0 ? gelu(t[i,j] * scale[i] + bias[j]) * "
      "0.5 : r[i,j]; }",
      kDims);
  ASSERT_TRUE(form.ok()) << form.status();
  EXPECT_FALSE(form->trivial_epilogue);
  ASSERT_EQ(form->operands.size(), 3u);
  for (const EpilogueOperand& operand : form->operands) {
    const std::vector<int64_t> strides = {operand.m[0], operand.n[0]};
    if (operand.tensor == 2) {
      EXPECT_THAT(strides, ElementsAre(0, 1));
    }
    if (operand.tensor == 3) {
      EXPECT_THAT(strides, ElementsAre(1, 0));
    }
    if (operand.tensor == 4) {
      EXPECT_THAT(strides, ElementsAre(7, 1));
    }
  }
}

TEST(Contraction, AResidualMayBeTheOutputItself) {
  Program program{"",
                  "operator P(M,N,K) { input A[M,K], B[K,N], r[M,N]; output C[M,N]; "
                  "C[i,j] = sum(A[i,k] * B[k,j]) + r[i,j]; }",
                  kDims};
  WorkloadSpec spec;
  spec.program = program.text;
  spec.dims = *ParseDims(program.dims);
  spec.alias = {{"C", "r"}};
  auto workload = CheckWorkload(spec);
  ASSERT_TRUE(workload.ok()) << workload.status();
  auto form = MatchContraction(*workload);
  ASSERT_TRUE(form.ok()) << form.status();
  ASSERT_EQ(form->operands.size(), 1u);
  EXPECT_TRUE(form->operands[0].aliases_output);
}

TEST(Contraction, EmptyAndUnitExtentsMatch) {
  const char* text =
      "operator P(M,N,K) { input A[M,K], B[K,N]; output C[M,N] = sum(A[i,k] * B[k,j]); }";
  for (const char* dims :
       {"M=5,N=7,K=0", "M=0,N=7,K=3", "M=5,N=0,K=3", "M=0,N=0,K=0", "M=1,N=1,K=1"}) {
    EXPECT_TRUE(Match(text, dims).ok()) << dims;
  }
}

TEST(Contraction, SaysWhatItDoesNotTake) {
  EXPECT_THAT(
      Refusal("operator P(M,K) { input A[M,K]; output y[M]; y[i] = sum(A[i,k]); }", "M=2,K=3"),
      HasSubstr("other than a product"));
  EXPECT_THAT(Refusal("operator P(M,K) { input A[M,K]; output y[M]; y[i] = max(A[i,k] * A[i,k]); }",
                      "M=2,K=3"),
              HasSubstr("not a sum"));
  EXPECT_THAT(Refusal("operator P(M) { input A[M]; output y[M]; y = A * 2; }", "M=2"),
              HasSubstr("no reduction"));
  EXPECT_THAT(
      Refusal("operator P(M,K) { input A[M,K], B[K]; output y[M], z[M]; y[i] = sum(A[i,k] * B[k]); "
              "z[i] = 1; }",
              "M=2,K=3"),
      HasSubstr("2 outputs"));
  EXPECT_THAT(
      Refusal(
          "operator P(M,K) { input A[M,K], B[K]; output y[M]; y[i] = sum(A[i,k] * B[k] * 0.125); }",
          "M=2,K=3"),
      HasSubstr("more than two factors"));
  EXPECT_THAT(Refusal("operator P(M,K) { input A[M+K-1], B[K]; output y[M]; y[i] = sum(k in 0..K: "
                      "A[i+k] * B[k]); }",
                      "M=2,K=3"),
              HasSubstr("window"));
  EXPECT_THAT(Refusal("operator P(M,K) { input A[M,K], B[K]; output y[M]; "
                      "y[i] = sum(k in 0..K: (A[i,k+1] else 0) * B[k]); }",
                      "M=2,K=3"),
              HasSubstr("`else`"));
  EXPECT_THAT(Refusal("operator P(M) { input A[M,M], B[M]; output y[M]; y[i] = sum(k in 0..i+1: "
                      "A[i,k] * B[k]); }",
                      "M=4"),
              HasSubstr("range depends"));
  EXPECT_THAT(Refusal("operator P(M,K) { input A[M,K], B[K]; output y[M]; t[i] : f16 = sum(A[i,k] "
                      "* B[k]); y[i] = t[i]; }",
                      "M=2,K=3"),
              HasSubstr("temporary t"));
  EXPECT_THAT(Refusal("operator P(M,K) { input A[M,K] : f16, B[K] : f16; output y[M] : f16; y[i] = "
                      "sum(A[i,k] * B[k]); }",
                      "M=2,K=3"),
              HasSubstr("f16"));
  EXPECT_THAT(
      Refusal("operator P(M,K) { input A[M,K], B[K]; output y[M]; y[i] = sum(A[i,k] * B[k]) * i; }",
              "M=2,K=3"),
      HasSubstr("index"));
}

TEST(Contraction, DoublesMatchToo) {
  auto form =
      Match("operator P(M,N,K) { input A[M,K], B[K,N]; output C[M,N] = sum(A[i,k] * B[k,j]); }",
            kDims, "A=f64,B=f64,C=f64");
  ASSERT_TRUE(form.ok()) << form.status();
  EXPECT_EQ(form->type, DType::kF64);
  EXPECT_EQ(form->accumulator, DType::kF64);
}

}  // namespace
}  // namespace kiln::compiler
