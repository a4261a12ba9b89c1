// SPDX-License-Identifier: Apache-2.0
// Strides, alignment, aliasing (LANGUAGE.md section 6), and the field case of keys that ignored
// strides.
#include <random>
#include <set>

#include "gmock/gmock.h"
#include "proto/contract/error.h"
#include "proto/contract/language/overlap.h"
#include "tests/proto/contract/language/programs.h"

namespace kiln::language {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

Overlap ByCounting(const std::vector<int64_t>& extents, const std::vector<int64_t>& strides) {
  std::set<int64_t> seen;
  std::vector<int64_t> index(extents.size(), 0);
  for (int64_t extent : extents) {
    if (extent == 0) return Overlap::kNo;
  }
  while (true) {
    int64_t offset = 0;
    for (size_t i = 0; i < extents.size(); ++i) offset += index[i] * strides[i];
    if (!seen.insert(offset).second) return Overlap::kYes;
    size_t axis = 0;
    while (axis < extents.size() && ++index[axis] == extents[axis]) index[axis++] = 0;
    if (axis == extents.size()) return Overlap::kNo;
  }
}

TEST(Overlap, AgreesWithCounting) {
  std::mt19937 random(7);
  int overlapping = 0;
  for (int n = 0; n < 4000; ++n) {
    size_t rank = random() % 5;
    std::vector<int64_t> extents, strides;
    for (size_t i = 0; i < rank; ++i) {
      extents.push_back(random() % 6);
      strides.push_back(random() % (n % 2 == 0 ? 20 : 200));
    }
    Overlap expected = ByCounting(extents, strides);
    overlapping += expected == Overlap::kYes;
    ASSERT_EQ(FindOverlap(extents, strides), expected)
        << testing::PrintToString(extents) << testing::PrintToString(strides);
  }
  // Both answers are common among the samples.
  EXPECT_GT(overlapping, 200);
  EXPECT_LT(overlapping, 3800);
}

TEST(Overlap, DecidesLargeOnes) {
  EXPECT_EQ(FindOverlap({1 << 20, 1 << 20}, {7, 11}), Overlap::kYes);
  EXPECT_EQ(FindOverlap({11, 7}, {7, 11}), Overlap::kNo);
  EXPECT_EQ(FindOverlap({12, 8}, {7, 11}), Overlap::kYes);
  EXPECT_EQ(FindOverlap({1000003, 1000033}, {1000033, 1000003}), Overlap::kNo);
  EXPECT_EQ(FindOverlap({1000004, 1000034}, {1000033, 1000003}), Overlap::kYes);
  EXPECT_EQ(FindOverlap({int64_t{1} << 39, int64_t{1} << 39}, {1, int64_t{1} << 39}), Overlap::kNo);
  EXPECT_EQ(FindOverlap({4096, 4096}, {1, 4095}), Overlap::kYes);
  EXPECT_EQ(FindOverlap({5, 1, 7}, {7, 0, 1}), Overlap::kNo);
  EXPECT_EQ(FindOverlap({5}, {0}), Overlap::kYes);
}

WorkloadSpec Strided(const std::string& program, const std::string& dims,
                     const std::string& strides) {
  WorkloadSpec spec = MakeSpec(program, dims);
  auto parsed = ParseStrides(strides);
  EXPECT_TRUE(parsed.ok());
  if (parsed.ok()) spec.strides = *parsed;
  return spec;
}

const char kCopy[] = "operator F(M, N) { input x[M,N]; output y[M,N]; y = x; }";

TEST(Strides, OfExtentsZeroAndOneDoNotCount) {
  std::string canonical = Check(kCopy, "M=1,N=8").canonical;
  EXPECT_EQ(Check(Strided(kCopy, "M=1,N=8", "x=999:1,y=0:1")).canonical, canonical);
  EXPECT_EQ(Check(Strided(kCopy, "M=0,N=8", "x=3:5")).canonical, Check(kCopy, "M=0,N=8").canonical);
  EXPECT_EQ(Check(Strided(kCopy, "M=0..1,N=8", "x=999:1")).canonical,
            Check(kCopy, "M=0..1,N=8").canonical);
}

TEST(Strides, PackedOnesAreAsNone) {
  Workload w = Check(Strided(kCopy, "M=4,N=8", "x=8:1,y=9:1"));
  EXPECT_TRUE(w.graph.tensors[0].packed);
  EXPECT_FALSE(w.graph.tensors[1].packed);
  EXPECT_THAT(w.graph.tensors[1].strides, ElementsAre(9, 1));
  EXPECT_EQ(SpanElements(w.graph, w.graph.tensors[1]), 3 * 9 + 8);
  EXPECT_THAT(w.canonical, HasSubstr("t1 output f32 [4,8] strides 9:1 align 16"));
  // The first extent does not matter to them: a batch may be dynamic.
  EXPECT_THAT(Check(kCopy, "M=1..4,N=8").graph.tensors[0].strides, ElementsAre(8, 1));
  EXPECT_TRUE(Check(kCopy, "M=4,N=1..8").graph.tensors[0].strides.empty());
  EXPECT_EQ(Check(Strided(kCopy, "M=1..4,N=8", "x=8:1")).canonical,
            Check(kCopy, "M=1..4,N=8").canonical);
}

TEST(Strides, ThatCannotBeAreRefused) {
  EXPECT_THAT(Refusal(Strided(kCopy, "M=4,N=8", "y=7:1")),
              AllOf(HasSubstr("strides.y"), HasSubstr("7:1"), HasSubstr("share memory")));
  EXPECT_THAT(Refusal(Strided(kCopy, "M=4,N=8", "y=0:1")), HasSubstr("share memory"));
  Check(Strided(kCopy, "M=4,N=8", "x=0:1"));
  Check(Strided(kCopy, "M=4,N=8", "x=1:1"));
  EXPECT_THAT(Refusal(Strided(kCopy, "M=4,N=8", "x=8")), HasSubstr("2 strides, one per axis"));
  EXPECT_THAT(Refusal(Strided(kCopy, "M=4,N=8", "x=-8:1")), HasSubstr("negative"));
  EXPECT_THAT(Refusal(Strided(kCopy, "M=4,N=8", "z=8:1")),
              AllOf(HasSubstr("strides.z"), HasSubstr("x, y")));
  EXPECT_THAT(Refusal(Strided("operator F(M, N) { input x[M,N] : i4; output y[M,N]; y = x; }",
                              "M=4,N=8", "x=9:1")),
              HasSubstr("even strides"));
}

TEST(Alignment, IsAPowerOfTwoThatHoldsAnElement) {
  auto with = [](int64_t bytes) {
    WorkloadSpec spec = MakeSpec(kCopy, "M=4,N=8");
    spec.alignment["x"] = bytes;
    return spec;
  };
  for (int64_t bytes : {4, 8, 16, 64, 4096})
    EXPECT_EQ(Check(with(bytes)).graph.tensors[0].alignment, bytes);
  for (int64_t bytes : {-4, 0, 1, 2, 12, 8192}) {
    EXPECT_THAT(Refusal(with(bytes)),
                AllOf(HasSubstr("alignment.x"), HasSubstr("a power of two from 4 to 4096")));
  }
}

TEST(Alias, IsExactlyInPlace) {
  auto with = [](const std::string& program, const std::string& dims, const std::string& alias,
                 const std::string& strides = "") {
    WorkloadSpec spec = Strided(program, dims, strides);
    spec.alias = *ParseAlias(alias);
    return spec;
  };
  Workload w = Check(with(kCopy, "M=4,N=8", "y=x"));
  EXPECT_EQ(w.graph.tensors[1].alias_of, 0);
  EXPECT_NE(w.signature, Check(kCopy, "M=4,N=8").signature);
  EXPECT_EQ(FootprintBytes(w.graph), 4 * 8 * 4);
  Check(with(kCopy, "M=4,N=8", "y=x", "x=9:1,y=9:1"));
  EXPECT_THAT(Refusal(with(kCopy, "M=4,N=8", "y=x", "x=9:1")),
              AllOf(HasSubstr("alias.y"), HasSubstr("partial overlap")));
  EXPECT_THAT(Refusal(with(kMatMul, "M=4,N=8,K=5", "C=A", "")), HasSubstr("partial overlap"));
  EXPECT_THAT(Refusal(with(kCopy, "M=4,N=8", "x=y")), HasSubstr("no output"));
  EXPECT_THAT(Refusal(with(kCopy, "M=4,N=8", "y=z")), HasSubstr("no input"));
  EXPECT_THAT(Refusal(with("operator F(N) { constant x[N]; output y[N]; y = x; }", "N=4", "y=x")),
              HasSubstr("a constant"));
  EXPECT_THAT(Refusal(with("operator F(N) { input x[N]; output y[N], z[N]; y = x; z = x; }", "N=4",
                           "y=x,z=x")),
              HasSubstr("one output per input"));
  EXPECT_THAT(
      Refusal(with("operator F(N) { input x[N] : f16; output y[N]; y = x; }", "N=4", "y=x")),
      HasSubstr("partial overlap"));
}

// Field case C37: a key with only a "non-packed" flag gave the results of one layout for another.
TEST(FieldCases, EachLayoutOfAConvolutionHasItsOwnKey) {
  const char kConv[] =
      R"(operator Conv(N, C, H, W, K) { input x[N,C,H,W]; constant w[K,C,3,3]; output y[N,K,H-2,W-2];
    y[n,k,p,q] = sum(x[n,c,p+r,q+s] * w[k,c,r,s]); })";
  const std::string dims = "N=1,C=8,H=32,W=32,K=4";
  std::set<std::string> keys{Check(kConv, dims).signature};
  for (const char* strides : {"x=10240:1280:40:1", "x=16384:2048:32:1", "x=8192:1:256:8"}) {
    EXPECT_TRUE(keys.insert(Check(Strided(kConv, dims, strides)).signature).second) << strides;
  }
  EXPECT_EQ(Check(Strided(kConv, dims, "x=8192:1024:32:1")).signature,
            Check(kConv, dims).signature);
  EXPECT_EQ(keys.size(), 4);
}

TEST(Fields, AtFaultAreNamed) {
  auto reason = [](const WorkloadSpec& spec) { return GetErrorInfo(CheckWorkload(spec).status()); };
  WorkloadSpec unbound = MakeSpec(kMatMul, "M=4,N=4");
  EXPECT_EQ(reason(unbound).reason, "UNBOUND_DIM");
  EXPECT_EQ(reason(unbound).details["field"], "dims.K");
  EXPECT_EQ(reason(MakeSpec(kMatMul, "M=4,N=4,K=4,L=4")).details["field"], "dims.L");
  WorkloadSpec typed = MakeSpec("operator F(N) { input x[N] : f16; output y[N]; y = x; }", "N=4");
  typed.types["x"] = DType::kF32;
  EXPECT_EQ(reason(typed).reason, "TYPE_CONTRADICTS_PROGRAM");
  EXPECT_EQ(reason(typed).details["allowed"], "f16");
  typed.types = {{"t", DType::kF32}};
  EXPECT_EQ(reason(typed).details["field"], "types.t");
  WorkloadSpec policy = MakeSpec(kMatMul, "M=4,N=4,K=4");
  policy.policy.accumulate["A"] = DType::kF16;
  EXPECT_EQ(reason(policy).reason, "UNKNOWN_OUTPUT");
  policy.policy.accumulate = {{"C", DType::kF64}};
  EXPECT_EQ(reason(policy).reason, "INVALID_ACCUMULATOR");
  EXPECT_EQ(reason(policy).details["field"], "policy.accumulate.C");
  policy.policy.accumulate = {{"C", DType::kI32}};
  EXPECT_EQ(reason(policy).reason, "INVALID_ACCUMULATOR");
}

}  // namespace
}  // namespace kiln::language
