// SPDX-License-Identifier: Apache-2.0
#include "gmock/gmock.h"
#include "proto/contract/error.h"
#include "proto/contract/spec.h"

namespace kiln {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(SpecText, ParsesDims) {
  auto dims = ParseDims("M=512, K=1..4096");
  ASSERT_TRUE(dims.ok());
  EXPECT_EQ((*dims)["M"], (DimBinding{512, 512}));
  EXPECT_EQ((*dims)["K"], (DimBinding{1, 4096}));
  EXPECT_THAT(*ParseDims(""), IsEmpty());
  EXPECT_EQ((*ParseDims("M=-3"))["M"].lo, -3);  // CheckWorkload says what is wrong with it
}

TEST(SpecText, ParsesTheOtherFields) {
  EXPECT_EQ(ParseTypes("A=f16,B=e4m3")->at("B"), DType::kE4m3);
  EXPECT_THAT(ParseStrides("A=600:1,B=0,s=")->at("A"), ElementsAre(600, 1));
  EXPECT_THAT(ParseStrides("A=600:1,B=0,s=")->at("s"), IsEmpty());
  EXPECT_EQ(ParseAlignment("A=4")->at("A"), 4);
  EXPECT_EQ(ParseAlias("y=x")->at("y"), "x");
}

TEST(SpecText, ParsesPolicies) {
  auto policy = ParsePolicy("tf32,accumulate=C:f16,order=fixed,library=no,finite_only,approximate");
  ASSERT_TRUE(policy.ok());
  EXPECT_TRUE(policy->tf32 && policy->finite_only && policy->approximate && policy->fixed_order &&
              !policy->library);
  EXPECT_EQ(policy->accumulate.at("C"), DType::kF16);
  EXPECT_EQ(*ParsePolicy(""), Policy());
  EXPECT_EQ(*ParsePolicy("order=any,library=yes"), Policy());
}

TEST(SpecText, NamesThePartAtFault) {
  auto field = [](const auto& result) {
    EXPECT_EQ(result.status().code(), absl::StatusCode::kInvalidArgument);
    return GetErrorInfo(result.status()).details["field"];
  };
  EXPECT_EQ(field(ParseDims("M=512,N")), "dims.N");
  EXPECT_EQ(field(ParseDims("M=512,N=x")), "dims.N");
  EXPECT_EQ(field(ParseDims("M=1..")), "dims.M");
  EXPECT_EQ(field(ParseDims("M=99999999999999999999")), "dims.M");
  EXPECT_EQ(field(ParseDims("M=1,M=2")), "dims.M");
  EXPECT_EQ(field(ParseDims("M=1 2")), "dims.M");
  EXPECT_EQ(field(ParseDims("=1")), "dims");
  EXPECT_EQ(field(ParseDims("M=1,")), "dims");
  EXPECT_EQ(field(ParseTypes("A=f17")), "types.A");
  EXPECT_EQ(field(ParseStrides("A=1:x")), "strides.A");
  EXPECT_EQ(field(ParseAlignment("A=1.5")), "alignment.A");
  EXPECT_EQ(field(ParseAlias("y=2")), "alias.y");
  EXPECT_EQ(field(ParsePolicy("tf33")), "policy");
  EXPECT_EQ(field(ParsePolicy("order=some")), "policy");
  EXPECT_EQ(field(ParsePolicy("accumulate=C")), "policy.accumulate");
  EXPECT_EQ(field(ParsePolicy("accumulate=C:f16,accumulate=C:bf16")), "policy.accumulate.C");
  EXPECT_THAT(std::string(ParsePolicy("tf33").status().message()), HasSubstr("order=any|fixed"));
  EXPECT_THAT(std::string(ParseTypes("A=f17").status().message()), HasSubstr("f64 f32 f16"));
}

}  // namespace
}  // namespace kiln
