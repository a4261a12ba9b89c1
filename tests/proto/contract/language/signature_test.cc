// SPDX-License-Identifier: Apache-2.0
// What a signature depends on, and what it does not (LANGUAGE.md section 7).
#include <set>

#include "tests/proto/contract/language/programs.h"

namespace kiln::language {
namespace {

const char kDims[] = "M=64,N=32,K=16";

std::string MatMulWith(const std::string& statements) {
  return "operator F(M, N, K) { input A[M,K], B[K,N]; output C[M,N]; " + statements + " }";
}

TEST(Signature, SurvivesNamesCommentsSpaceAndOrderOfDims) {
  std::string signature = Check(kMatMul, kDims).signature;
  EXPECT_EQ(Check("operator X(a,b,c){input P[a,c],Q[c,b];output R[a,b]=sum(P[x,z]*Q[z,y]);}",
                  "a=64,b=32,c=16")
                .signature,
            signature);
  EXPECT_EQ(Check("// comment \xc3\xa4\noperator MatMul(K, N, M) {\r\n\tinput A[M,K]; // rows\n "
                  "input B[K,N];\n output C[M,N];"
                  "\n\n C[i,j] = sum(A[i,k] * B[k,j]);}",
                  kDims)
                .signature,
            signature);
}

TEST(Signature, AgreesForAllSpellingsOfOneMeaning) {
  std::string signature = Check(kMatMul, kDims).signature;
  for (const char* statements :
       {"C[i,j] = sum(A[i,k] * B[k,j]);", "C = sum(A[i,k] * B[k,j]);",
        "C[i,j] = sum(k in 0..K: A[i,k] * B[k,j]);", "C[i,j] = sum(A[i,k] * B[k,j] over [k]);",
        "C[i in 0..M, j] = sum(A[(i),k] * B[k,j]);", "C = sum(A * B over [K]);",
        "t[i,k,j] = A[i,k] * B[k,j]; C[i,j] = sum(t[i,k,j]);",
        "t[j,i,k] = A[i,k] * B[k,j]; C = sum(t over [K]);",
        "a = A; b = B; C = sum(a * b over [K]);",
        "unused = A * 2; C[i,j] = sum(A[i,k] * (B[k,j] else 7));",
        "s[i,j] = sum(A[i,k] * B[k,j]); C = s;", "C[i,j] = sum(k in 3-3..K*1: A[i,k] * B[k,j]);"}) {
    EXPECT_EQ(Check(MatMulWith(statements), kDims).canonical, Check(kMatMul, kDims).canonical)
        << statements;
    EXPECT_EQ(Check(MatMulWith(statements), kDims).signature, signature) << statements;
  }
}

TEST(Signature, DiffersForNearMisses) {
  std::set<std::string> signatures{Check(kMatMul, kDims).signature};
  auto is_new = [&](const std::string& statements) {
    return signatures.insert(Check(MatMulWith(statements), kDims).signature).second;
  };
  EXPECT_TRUE(is_new("C[i,j] = sum(B[k,j] * A[i,k]);"));
  EXPECT_TRUE(is_new("C[i,j] = max(A[i,k] * B[k,j]);"));
  EXPECT_TRUE(is_new("C[i,j] = sum(k in 0..K-1: A[i,k] * B[k,j]);"));
  EXPECT_TRUE(is_new("C[i,j] = sum(k in 0..K-1: A[i,k+1] * B[k,j]);"));
  EXPECT_TRUE(is_new("C[i,j] = sum(A[i,k] + B[k,j]);"));
  EXPECT_TRUE(is_new("C[i,j] = sum(A[i,k] * B[k,j]) * 2;"));
  EXPECT_TRUE(is_new("C[i,j] = sum(A[i,k] * B[k,j]) * 2.5;"));
  EXPECT_TRUE(is_new("t[i,j] : f32 = sum(A[i,k] * B[k,j]); C = t;"));
  EXPECT_TRUE(is_new("C[i,j] = sum(k in 0..K+1: (A[i,k] else 0) * (B[k,j] else 0));"));
  EXPECT_TRUE(is_new("C[i,j] = sum(k in 0..K+1: (A[i,k] else 1) * (B[k,j] else 0));"));
  EXPECT_TRUE(is_new("C[i,j] = sum(A[i,k] * B[k,j]) + 0;"));
  EXPECT_TRUE(is_new("C[i,j] = sum(A[i,k] * B[k,j]) - 0;"));
  EXPECT_TRUE(is_new("C[i,j] = sum(A[i,k] * B[k,j]) + -0.0;"));
}

TEST(Signature, DependsOnTheOrderOfInputsAndOutputs) {
  std::string swapped =
      "operator F(M, N, K) { input B[K,N], A[M,K]; output C[M,N] = sum(A[i,k] * B[k,j]); }";
  EXPECT_NE(Check(swapped, kDims).signature, Check(kMatMul, kDims).signature);
  std::string constant =
      "operator F(M, N, K) { input A[M,K]; constant B[K,N]; output C[M,N] = sum(A[i,k] * B[k,j]); "
      "}";
  EXPECT_NE(Check(constant, kDims).signature, Check(kMatMul, kDims).signature);
  std::string yz = "operator F(N) { input x[N]; output y[N], z[N]; y = x + 1; z = x; }";
  std::string zy = "operator F(N) { input x[N]; output z[N], y[N]; y = x + 1; z = x; }";
  EXPECT_NE(Check(yz, "N=3").signature, Check(zy, "N=3").signature);
}

TEST(Signature, DependsOnEachFieldOfTheSpec) {
  WorkloadSpec base = MakeSpec(kMatMul, kDims);
  std::set<std::string> signatures{Check(base).signature};
  auto is_new = [&](auto change) {
    WorkloadSpec spec = base;
    change(spec);
    return signatures.insert(Check(spec).signature).second;
  };
  EXPECT_TRUE(is_new([](WorkloadSpec& s) { s.dims["M"] = {65, 65}; }));
  EXPECT_TRUE(is_new([](WorkloadSpec& s) { s.dims["M"] = {1, 64}; }));
  EXPECT_TRUE(is_new([](WorkloadSpec& s) { s.dims["M"] = {2, 64}; }));
  EXPECT_TRUE(is_new([](WorkloadSpec& s) { s.dims["N"] = {1, 64}; }));
  EXPECT_TRUE(is_new([](WorkloadSpec& s) { s.types["A"] = DType::kF64; }));
  EXPECT_TRUE(is_new([](WorkloadSpec& s) { s.types["B"] = DType::kF64; }));
  EXPECT_TRUE(is_new([](WorkloadSpec& s) { s.types["C"] = DType::kF16; }));
  EXPECT_TRUE(is_new([](WorkloadSpec& s) { s.strides["A"] = {20, 1}; }));
  EXPECT_TRUE(is_new([](WorkloadSpec& s) { s.strides["A"] = {1, 64}; }));
  EXPECT_TRUE(is_new([](WorkloadSpec& s) { s.strides["A"] = {0, 1}; }));
  EXPECT_TRUE(is_new([](WorkloadSpec& s) { s.alignment["A"] = 4; }));
  EXPECT_TRUE(is_new([](WorkloadSpec& s) { s.alignment["C"] = 4; }));
  EXPECT_TRUE(is_new([](WorkloadSpec& s) { s.alignment["C"] = 64; }));
  EXPECT_TRUE(is_new([](WorkloadSpec& s) { s.policy.tf32 = true; }));
  EXPECT_TRUE(is_new([](WorkloadSpec& s) { s.policy.finite_only = true; }));
  EXPECT_TRUE(is_new([](WorkloadSpec& s) { s.policy.approximate = true; }));
  EXPECT_TRUE(is_new([](WorkloadSpec& s) { s.policy.fixed_order = true; }));
  EXPECT_TRUE(is_new([](WorkloadSpec& s) { s.policy.library = false; }));
  EXPECT_TRUE(is_new([](WorkloadSpec& s) { s.policy.accumulate["C"] = DType::kF16; }));
  EXPECT_TRUE(is_new([](WorkloadSpec& s) { s.policy.accumulate["C"] = DType::kBf16; }));
  EXPECT_FALSE(is_new([](WorkloadSpec& s) { s.policy.accumulate["C"] = DType::kF32; }));
  EXPECT_FALSE(is_new([](WorkloadSpec& s) { s.types["A"] = DType::kF32; }));
  EXPECT_FALSE(is_new([](WorkloadSpec& s) { s.alignment["A"] = 16; }));
  EXPECT_FALSE(is_new([](WorkloadSpec& s) { s.strides["A"] = {16, 1}; }));
}

TEST(Signature, SurvivesMovingTemporariesAndRepeatingThem) {
  auto program = [](const std::string& body) {
    return "operator F(N) { input x[N]; output y[N], z[N]; " + body + " }";
  };
  std::string signature =
      Check(program(
                "a[i] : f16 = exp(x[i]); b[i] : f16 = log(x[i]); y[i] = a[i] * b[i]; z[i] = b[i];"),
            "N=5")
          .signature;
  EXPECT_EQ(
      Check(program(
                "b[i] : f16 = log(x[i]); a[j] : f16 = exp(x[j]); z[i] = b[i]; y[i] = a[i] * b[i];"),
            "N=5")
          .signature,
      signature);
  EXPECT_EQ(
      Check(program("b : f16 = log(x); c : f16 = log(x); a : f16 = exp(x); z = c; y = a * b;"),
            "N=5")
          .signature,
      signature);
}

TEST(Signature, NumbersBoundVariablesAsTheyAppear) {
  auto program = [](const std::string& body) {
    return "operator F(N, M) { input x[N,M]; output y[] = " + body + "; }";
  };
  std::string canonical = Check(program("sum(x[i,j])"), "N=3,M=4").canonical;
  EXPECT_EQ(Check(program("sum(j in 0..M, i in 0..N: x[i,j])"), "N=3,M=4").canonical, canonical);
  EXPECT_EQ(Check(program("sum(i in 0..N: x[i,j])"), "N=3,M=4").canonical, canonical);
  EXPECT_EQ(Check(program("sum(x over [M,N])"), "N=3,M=4").canonical, canonical);
  EXPECT_NE(Check(program("sum(i in 0..N: sum(j in 0..M: x[i,j]))"), "N=3,M=4").canonical,
            canonical);
}

TEST(Signature, FoldsOperationsOnLiterals) {
  auto canonical = [](const std::string& value) {
    return Check(OneStatement("y = x * " + value + ";"), "N=4").canonical;
  };
  EXPECT_EQ(canonical("(1/2)"), canonical("0.5"));
  EXPECT_EQ(canonical("(2^3 - N)"), canonical("4"));
  EXPECT_EQ(canonical("(N/8)"), canonical("0x1p-1"));
  EXPECT_EQ(canonical("sqrt(4)"), canonical("2.0"));
  EXPECT_EQ(canonical("(1 < 2 ? 3 : x)"), canonical("3"));
  EXPECT_NE(canonical("0.1"), canonical("0.10000001"));
  EXPECT_EQ(Check(OneStatement("y = x^2;"), "N=4").canonical,
            Check(OneStatement("y = x * x;"), "N=4").canonical);
}

}  // namespace
}  // namespace kiln::language
