// SPDX-License-Identifier: Apache-2.0
// Exactness of access bounds (LANGUAGE.md section 4): what can fall outside is refused, what cannot
// is accepted and its `else` leaves no trace; and Bounds() of graph.h against counting.
#include "gmock/gmock.h"
#include "proto/contract/language/affine.h"
#include "tests/proto/contract/language/programs.h"

namespace kiln::language {
namespace {

using testing::HasSubstr;

struct Access {
  const char* program;
  const char* dims;
};

// All in range for all bindings; just so.
const Access kInside[] = {
    {"operator F(N) { input x[N]; output y[N]; y[i] = x[N-1-i]; }", "N=1..9"},
    {"operator F(N) { input x[N]; output y[N]; y[i] = x[i+1-1]; }", "N=0..9"},
    {"operator F(N) { input x[N]; output y[N]; y[i] = x[N-1]; }", "N=0..9"},
    {"operator F(N) { input x[N]; output y[N]; y[i] = x[0]; }", "N=0..9"},
    {"operator F(N) { input x[0]; output y[N]; y[i] = x[5]; }", "N=0"},
    {"operator F(N) { input x[N]; output y[2*N]; y[i] = x[i/2]; }", "N=0..9"},
    {"operator F(N) { input x[2*N]; output y[N]; y[i] = x[2*i+1]; }", "N=0..9"},
    {"operator F(N) { input x[N]; output y[5*N]; y[i] = x[i%N]; }", "N=1..9"},
    {"operator F(N, R) { input x[N], w[R]; output y[N-R+1]; y[p] = sum(x[p+r] * w[r]); }",
     "N=3..9,R=1..3"},
    {"operator F(N, R) { input x[N], w[R]; output y[(N-R)/2+1]; y[p] = sum(x[2*p+r] * w[r]); }",
     "N=3..9,R=1..3"},
    {"operator F(M, K) { input x[M*K]; output y[M,K]; y[i,k] = x[i*K+k]; }", "M=0..9,K=0..9"},
    {"operator F(M, K) { input x[M,K]; output y[M*K]; y[i] = x[i/K,i%K]; }", "M=0..9,K=4"},
    {"operator F(N) { input x[N]; output y[N]; y[i] = sum(j in 0..i+1: x[j]); }", "N=0..9"},
    {"operator F(N) { input x[N]; output y[N]; y[i] = sum(j in 0..i+1, k in j..i+1: x[i-k+j]); }",
     "N=0..9"},
    {"operator F(N) { input x[N]; output y[N]; y[i] = sum(j in i..N: x[j-i]); }", "N=0..9"},
    {"operator F(N) { input x[N]; output y[N]; y[i] = avg(j in 0..i+1: x[j]); }", "N=0..9"},
    {"operator F(N) { input x[N]; output y[N]; y[i] = argmax(j in i..N: x[j]); }", "N=0..9"},
    {"operator F(N) { input x[N,N]; output y[N]; y[i] = sum(k in 0..N-i: x[i+k,k]); }", "N=0..9"},
    {"operator F(N) { input x[256], i[N] : u8; output y[N]; y[n] = x[i[n]]; }", "N=4"},
    {"operator F(N) { input x[N]; output y[N]; y[i] = x[i-i/2*2]; }", "N=2..9"},
};

const Access kOutside[] = {
    {"operator F(N) { input x[N]; output y[N]; y[i] = x[N-i]; }", "N=1..9"},
    {"operator F(N) { input x[N]; output y[N]; y[i] = x[1]; }", "N=0..9"},
    {"operator F(N) { input x[N]; output y[2*N+1]; y[i] = x[i/2]; }", "N=1..9"},
    {"operator F(N) { input x[2*N]; output y[N]; y[i] = x[2*i+2]; }", "N=1..9"},
    {"operator F(N, R) { input x[N], w[R]; output y[N-R+2]; y[p] = sum(x[p+r] * w[r]); }",
     "N=3..9,R=1..3"},
    {"operator F(M, K) { input x[M*K-1]; output y[M,K]; y[i,k] = x[i*K+k]; }", "M=1..9,K=1..9"},
    {"operator F(N) { input x[N]; output y[N]; y[i] = sum(j in 0..i+2: x[j]); }", "N=1..9"},
    {"operator F(N) { input x[N]; output y[N]; y[i] = sum(j in i..N: x[j+i]); }", "N=2..9"},
    {"operator F(N, M) { input x[N]; output y[M]; y[i] = x[0]; }", "N=0..9,M=1"},
    {"operator F(N) { input x[255], i[N] : u8, j[N] : u8; output y[N]; y[n] = x[n+250]; }", "N=6"},
};

TEST(Access, WhatStaysInsideIsAccepted) {
  for (const Access& access : kInside)
    EXPECT_TRUE(CheckWorkload(MakeSpec(access.program, access.dims)).ok())
        << access.program
        << CheckWorkload(MakeSpec(access.program, access.dims)).status().message();
}

TEST(Access, WhatCanFallOutsideIsRefused) {
  for (const Access& access : kOutside)
    EXPECT_THAT(Refusal(access.program, access.dims), HasSubstr("fall outside"));
}

TEST(Access, ElseThatIsNeverUsedLeavesNoTrace) {
  std::string with = "operator F(N) { input x[N], z[N]; output y[N]; y[i] = x[N-1-i] else z[i]; }";
  std::string without = "operator F(N) { input x[N], z[N]; output y[N]; y[i] = x[N-1-i]; }";
  EXPECT_EQ(Check(with, "N=5").canonical, Check(without, "N=5").canonical);
  EXPECT_THAT(
      Check("operator F(N) { input x[N]; output y[N]; y[i] = x[i+1] else 0; }", "N=5").canonical,
      HasSubstr(" else f32:0x0p0"));
}

TEST(Access, WhatTensorsHoldIsTheCallersPromise) {
  std::string gather = "operator F(N, M) { input x[N], i[M] : i32; output y[M]; y[n] = x[i[n]]; }";
  EXPECT_THAT(Check(gather, "N=5,M=4").canonical, testing::Not(HasSubstr("else")));
  std::string tested =
      "operator F(N, M) { input x[N], i[M] : i32; output y[M]; y[n] = x[i[n]] else 0; }";
  EXPECT_THAT(Check(tested, "N=5,M=4").canonical, HasSubstr("else"));
  std::string byte =
      "operator F(N, M) { input x[N], i[M] : u8; output y[M]; y[n] = x[i[n]] else 0; }";
  EXPECT_THAT(Check(byte, "N=256,M=4").canonical, testing::Not(HasSubstr("else")));
  EXPECT_THAT(Check(byte, "N=255,M=4").canonical, HasSubstr("else"));
}

// All values of a*i + b*j + c with i in 0..p, j in lo..i+q against the refusal, by counting.
TEST(Access, AgreesWithCountingOverDependentRanges) {
  for (int a = -2; a <= 2; ++a) {
    for (int b = -2; b <= 2; ++b) {
      for (int q = 0; q <= 2; ++q) {
        int least = 1 << 20, most = -(1 << 20);
        for (int i = 0; i < 5; ++i) {
          for (int j = 1 - q; j < i + q; ++j) {
            least = std::min(least, a * i + b * j);
            most = std::max(most, a * i + b * j);
          }
        }
        for (int shift : {-least, -least - 1}) {
          for (int extent : {most + shift + 1, most + shift}) {
            if (extent < 0) continue;
            std::string program = "operator F(N) { input x[" + std::to_string(extent) +
                                  "]; output y[N]; y[i] = sum(j in " + std::to_string(1 - q) +
                                  "..i+" + std::to_string(q) + ": x[" + std::to_string(a) + "*i+" +
                                  std::to_string(b) + "*j+" + std::to_string(shift) + "]); }";
            bool inside = shift == -least && extent == most + shift + 1;
            // A range that is empty for some i (q = 0) is judged as if it were not.
            if (q == 0 && !inside) continue;
            if (q == 0 && !CheckWorkload(MakeSpec(program, "N=5")).ok()) continue;
            EXPECT_EQ(CheckWorkload(MakeSpec(program, "N=5")).ok(), inside) << program;
          }
        }
      }
    }
  }
}

TEST(Affine, CollectsTermsAndDividesThem) {
  Affine affine({{1, 10}});
  Polynomial n = affine.Dim(0);
  Polynomial twice = affine.Add(n, n);
  EXPECT_EQ(affine.Div(affine.Add(twice, affine.Number(5)), affine.Number(2)),
            affine.Add(n, affine.Number(2)));
  EXPECT_EQ(affine.Add(twice, n, -2), affine.Number(0));
  EXPECT_EQ(affine.Min(affine.Mul(n, n)), 1);
  EXPECT_EQ(affine.Max(affine.Mul(n, n)), 100);
  Polynomial huge = affine.Number(int64_t{1} << 61);
  EXPECT_EQ(affine.Max(affine.Mul(huge, huge)), kUnknown);
}

// What has too many terms for a polynomial is judged by its range alone.
TEST(Affine, SumsOfManyQuotientsAreKnownByTheirRange) {
  std::string sum = "0";
  for (int k = 2; k < 800; ++k) sum += "+(i+" + std::to_string(k) + ")/" + std::to_string(k);
  std::string program = "operator F(N) { input x[N]; output y[N]; y[i] = x[" + sum + "] else 0; }";
  EXPECT_THAT(Check(program, "N=1..9").canonical, HasSubstr("else"));
  EXPECT_THAT(
      Refusal("operator F(N) { input x[N]; output y[N]; y[i] = x[" + sum + "]; }", "N=1..9"),
      testing::AllOf(HasSubstr("runs from 798 to"), HasSubstr("...")));
  EXPECT_THAT(
      Refusal("operator F(N) { input x[" + sum + "]; output y[N]; y[i] = x[i]; }", "N=1..9"),
      HasSubstr("is no dim"));
}

TEST(Bounds, OfSubscriptsAgreeWithCounting) {
  Workload w = Check(
      "operator F(N) { input x[N]; output y[N]; y[i] = sum(j in 0..3: x[(3*i-2*j+7)/2-i%4] else "
      "0); }",
      "N=50");
  const Node* read = nullptr;
  for (const Node& node : w.graph.nodes) read = node.op == Op::kRead ? &node : read;
  ASSERT_NE(read, nullptr);
  Interval range = Bounds(w.graph, read->args[0], {{0, 49}, {0, 2}});
  EXPECT_LE(range.lo, 1 - 3);
  EXPECT_GE(range.hi, (3 * 49 + 7) / 2 - 1);
  EXPECT_LE(range.hi, (3 * 49 + 7) / 2);
}

TEST(Bounds, CancelsVariablesAndTakesDimsAndTypes) {
  Workload w = Check(
      "operator F(N, M) { input x[N], i[4] : i8; output y[4]; y[n] = x[n+M-n-M+1] + (x[i[n]] else "
      "0) + (x[M+2] else 0); }",
      "N=2..9,M=3..4");
  std::vector<Interval> found;
  for (const Node& node : w.graph.nodes) {
    if (node.op == Op::kRead && node.index == 0)
      found.push_back(Bounds(w.graph, node.args[0], {{0, 3}}));
  }
  ASSERT_EQ(found.size(), 3);
  EXPECT_EQ(found[0].lo, 0);  // M - M is not seen as the same dim here: 1 - 1 and 1 + 1
  EXPECT_EQ(found[0].hi, 2);
  EXPECT_EQ(found[1].lo, -128);
  EXPECT_EQ(found[1].hi, 127);
  EXPECT_EQ(found[2].lo, 5);
  EXPECT_EQ(found[2].hi, 6);
}

}  // namespace
}  // namespace kiln::language
