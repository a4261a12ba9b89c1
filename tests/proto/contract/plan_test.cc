// SPDX-License-Identifier: Apache-2.0
#include "proto/contract/plan.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace kiln {
namespace {

Plan SomePlan() {
  Plan plan;
  plan.workspace_bytes = 4096;
  plan.persistent_bytes = 64;
  plan.tensors = {{16, 1024}, {4, 12}, {8, 16, true}, {16, 1024, true, 0}};
  plan.features = {"avx2", "fma"};
  plan.needs = {{"threads", 2}};
  Step pack;
  pack.kind = StepKind::kPrepack;
  pack.entry = "kiln_pack";
  pack.artifact = std::string(64, 'a');
  pack.arguments = {{.kind = ArgumentKind::kTensor, .index = 1, .offset = 8},
                    {.kind = ArgumentKind::kWorkspace, .offset = 64, .persistent = true}};
  Step kernel;
  kernel.entry = "kiln_main";
  kernel.grid = {Count{8, ""}, Count{1, "($0+127)/128"}, Count{1, ""}};
  kernel.shared_bytes = 65536;
  kernel.attributes = {{"max_dynamic_shared", 98304}};
  kernel.artifact = std::string(64, 'b');
  kernel.arguments = {{.kind = ArgumentKind::kDim, .index = 0},
                      {.kind = ArgumentKind::kScalar, .is_float = true, .number = 0.1},
                      {.kind = ArgumentKind::kScalar, .integer = -7},
                      {.kind = ArgumentKind::kWorkspace, .offset = 128}};
  Step fill;
  fill.kind = StepKind::kFill;
  fill.attributes = {{"bytes", 256}};
  fill.arguments = {{.kind = ArgumentKind::kTensor, .index = 2}};
  plan.steps = {pack, fill, kernel};
  return plan;
}

Plan Reparsed(const Plan& plan) {
  Plan parsed;
  std::string error;
  EXPECT_TRUE(ParsePlan(PrintPlan(plan), &parsed, &error)) << error;
  return parsed;
}

TEST(Plan, ParsesWhatItPrints) { EXPECT_EQ(Reparsed(SomePlan()), SomePlan()); }

TEST(Plan, AnEmptyPlanIsAPlan) { EXPECT_EQ(Reparsed(Plan()), Plan()); }

TEST(Plan, KeepsEveryBitOfAScalar) {
  for (double value :
       {0.1, -1.0 / 3, 5e-324, std::numeric_limits<double>::max(), -0.0,
        std::numeric_limits<double>::infinity(), -std::numeric_limits<double>::infinity()}) {
    Plan plan;
    plan.steps.resize(1);
    plan.steps[0].arguments = {{.kind = ArgumentKind::kScalar, .is_float = true, .number = value}};
    const double got = Reparsed(plan).steps[0].arguments[0].number;
    EXPECT_EQ(got, value);
    EXPECT_EQ(std::signbit(got), std::signbit(value));
  }
}

TEST(Plan, SaysWhichLineIsWrongAndWhy) {
  const struct {
    const char* text;
    const char* error;
  } kCases[] = {
      {"", "plan line 1: the text is empty"},
      {"plan 2\n", "plan line 1: not a plan of version 1"},
      {"plan 1\nworkspace -1\n", "plan line 2: '-1' is negative"},
      {"plan 1\nworkspace 99999999999999999999\n",
       "plan line 2: '99999999999999999999' is no integer"},
      {"plan 1\ngrid 1 1 1\n", "plan line 2: 'grid' before the first step"},
      {"plan 1\nstep kernle f shared=0\n", "plan line 2: 'kernle' is no kind of step"},
      {"plan 1\nstep kernel f shared=0\ngrid 1 1\n", "plan line 3: a word is missing"},
      {"plan 1\nstep kernel f shared=0\narg tensor 0 64\n",
       "plan line 3: '64' where +NUMBER belongs"},
      {"plan 1\nworkspace 1 2\n", "plan line 2: words are left over"},
      {"plan 1\nstep kernel f shared=0\narg scalar f 0.5\n",
       "plan line 3: '0.5' is no hexadecimal float"},
      {"plan 1\nstep kernel f shared=0\narg scalar f 0x1.8p-9223372036854775808\n",
       "plan line 3: the exponent of '0x1.8p-9223372036854775808' is out of range"},
  };
  for (const auto& c : kCases) {
    Plan plan;
    std::string error;
    EXPECT_FALSE(ParsePlan(c.text, &plan, &error)) << c.text;
    EXPECT_EQ(error, c.error);
  }
}

TEST(Count, EvaluatesOverDims) {
  int64_t value = 0;
  std::string error;
  ASSERT_TRUE(Evaluate({1, "($0+127)/128*$1-3%2"}, {129, 5}, &value, &error)) << error;
  EXPECT_EQ(value, 9);
  ASSERT_TRUE(Evaluate({1, "-(-$0)/2+7%4"}, {7}, &value, &error)) << error;
  EXPECT_EQ(value, 3 + 3);
  ASSERT_TRUE(Evaluate({1, "4+-3/2"}, {}, &value, &error)) << error;
  EXPECT_EQ(value, 2) << "division takes the floor";
  ASSERT_TRUE(Evaluate({1, "(0-1-9223372036854775807)%2222242"}, {}, &value, &error)) << error;
  EXPECT_EQ(value, 1330970) << "and the rest is from 0";
  ASSERT_TRUE(Evaluate({42, ""}, {}, &value, &error));
  EXPECT_EQ(value, 42);
}

TEST(Count, RefusesWhatIsNotALaunchNumber) {
  for (const char* text : {"1/0", "1/(0-2)", "$1", "1+", "(1", "1)", "0-1", "9223372036854775807+1",
                           "99999999999999999999", "x", "4611686018427387904*2", "--"}) {
    int64_t value = 0;
    std::string error;
    EXPECT_FALSE(Evaluate({1, text}, {1}, &value, &error)) << text;
    EXPECT_NE(error.find("launch number"), std::string::npos) << error;
  }
  int64_t value = 0;
  std::string error;
  EXPECT_FALSE(Evaluate({1, std::string(100000, '(')}, {}, &value, &error));
  EXPECT_FALSE(Evaluate({-1, ""}, {}, &value, &error));
  EXPECT_FALSE(Evaluate({1, "-(0-4611686018427387904*2)"}, {}, &value, &error));
  EXPECT_FALSE(Evaluate({1, "-$0"}, {std::numeric_limits<int64_t>::min()}, &value, &error));
  EXPECT_EQ(error, "launch number \"-$0\": the value overflows");
}

}  // namespace
}  // namespace kiln
