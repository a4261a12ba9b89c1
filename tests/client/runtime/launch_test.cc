// SPDX-License-Identifier: Apache-2.0
#include <thread>

#include "tests/client/runtime/plan_fixture.h"

namespace kiln::runtime {
namespace {

TEST(Launch, RunsEveryBlockOfAThreeDimensionalGridOnce) {
  for (const int threads : {1, 2, 3, 7}) {
    const PoolPtr pool = MakePool(threads);
    Plan plan;
    plan.tensors = {{.alignment = 8, .span_bytes = 5 * 7 * 11 * 8}};
    plan.steps = {KernelStep("count", 5, {TensorArgument(0)})};
    plan.steps[0].grid[1].value = 7;
    plan.steps[0].grid[2].value = 11;
    const PlanPtr loaded = MustLoad(plan);
    Aligned<int64_t> counters(5 * 7 * 11);
    void* tensors[] = {counters.data()};
    for (int launch = 1; launch <= 200; ++launch) {
      ASSERT_EQ(kiln_plan_launch(loaded.get(), pool.get(), tensors, nullptr, nullptr), KILN_OK);
      for (int i = 0; i < 5 * 7 * 11; ++i) ASSERT_EQ(counters[i], launch) << i;
    }
  }
}

TEST(Launch, AStepSeesWhatTheStepBeforeItWrote) {
  constexpr int64_t n = 5000;
  const PoolPtr pool = MakePool(2);
  Plan plan = ScalePlan(n, 13);
  plan.workspace_bytes = 4 * n + 64;
  plan.steps[0].arguments[1] = WorkspaceArgument(64);
  plan.steps.push_back(KernelStep(
      "add", 9, {TensorArgument(0), WorkspaceArgument(64), TensorArgument(1), IntegerArgument(n)}));
  const PlanPtr loaded = MustLoad(plan);
  EXPECT_EQ(kiln_plan_workspace_bytes(loaded.get()), 4 * n + 64);
  Aligned<float> x(n), y(n), workspace(n + 16);
  for (int i = 0; i < n; ++i) x[i] = static_cast<float>(i);
  void* tensors[] = {x.data(), y.data()};
  ASSERT_EQ(kiln_plan_launch(loaded.get(), pool.get(), tensors, workspace.data(), nullptr), KILN_OK)
      << kiln_error();
  for (int i = 0; i < n; ++i) ASSERT_EQ(y[i], 4.0f * i + 1) << i;
}

TEST(Launch, AFillClearsItsBytesAndNoOthers) {
  constexpr int64_t n = 300'000;  // several of the blocks that a fill is cut into
  const PoolPtr pool = MakePool(2);
  Plan plan;
  plan.tensors = {{.alignment = 4, .span_bytes = n}};
  Step fill;
  fill.kind = StepKind::kFill;
  fill.arguments = {TensorArgument(0, 3)};
  fill.attributes["bytes"] = n - 5;
  plan.steps = {fill};
  const PlanPtr loaded = MustLoad(plan);
  Aligned<char> bytes(n, 'x');
  void* tensors[] = {bytes.data()};
  ASSERT_EQ(kiln_plan_launch(loaded.get(), pool.get(), tensors, nullptr, nullptr), KILN_OK);
  for (int i = 0; i < n; ++i) ASSERT_EQ(bytes[i], i < 3 || i >= n - 2 ? 'x' : 0) << i;
}

TEST(Launch, EachThreadHasScratchOfItsOwn) {
  constexpr int kBlocks = 400;
  const PoolPtr pool = MakePool(4);
  Plan plan;
  plan.tensors = {{.alignment = 8, .span_bytes = 8 * kBlocks}};
  plan.steps = {KernelStep("scratch", kBlocks, {TensorArgument(0), IntegerArgument(8000)})};
  plan.steps[0].shared_bytes = 8000;
  const PlanPtr loaded = MustLoad(plan);
  Aligned<int64_t> good(kBlocks);
  void* tensors[] = {good.data()};
  ASSERT_EQ(kiln_plan_launch(loaded.get(), pool.get(), tensors, nullptr, nullptr), KILN_OK);
  for (int i = 0; i < kBlocks; ++i) EXPECT_EQ(good[i], 1) << i;
}

TEST(Launch, PacksConstantsOnceAndRefusesToRunBefore) {
  constexpr int64_t n = 100;
  const PoolPtr pool = MakePool(2);
  Plan plan;
  plan.persistent_bytes = 4 * n;
  plan.tensors.assign(3, {.alignment = 16, .span_bytes = 4 * n});  // x, constant, z
  plan.steps = {
      KernelStep("pack", 1, {TensorArgument(1), WorkspaceArgument(0, true), IntegerArgument(n)}),
      KernelStep(
          "add", 4,
          {TensorArgument(0), WorkspaceArgument(0, true), TensorArgument(2), IntegerArgument(n)})};
  plan.steps[0].kind = StepKind::kPrepack;
  const PlanPtr loaded = MustLoad(plan);
  EXPECT_EQ(kiln_plan_persistent_bytes(loaded.get()), 4 * n);
  Aligned<float> x(n, 1), constant(n, 5), z(n);
  void* tensors[] = {x.data(), constant.data(), z.data()};
  EXPECT_EQ(kiln_plan_launch(loaded.get(), pool.get(), tensors, nullptr, nullptr),
            KILN_BAD_ARGUMENT);
  EXPECT_NE(std::string(kiln_error()).find("kiln_plan_prepack"), std::string::npos);

  void* constants[] = {nullptr, constant.data(), nullptr};
  ASSERT_EQ(kiln_plan_prepack(loaded.get(), pool.get(), constants, nullptr), KILN_OK)
      << kiln_error();
  constant[0] = 1000;  // packed already
  ASSERT_EQ(kiln_plan_launch(loaded.get(), pool.get(), tensors, nullptr, nullptr), KILN_OK);
  for (int i = 0; i < n; ++i) EXPECT_EQ(z[i], 11) << i;
  ASSERT_EQ(kiln_plan_prepack(loaded.get(), pool.get(), constants, nullptr), KILN_OK);
  ASSERT_EQ(kiln_plan_launch(loaded.get(), pool.get(), tensors, nullptr, nullptr), KILN_OK);
  EXPECT_EQ(z[0], 2001);
}

TEST(Launch, GridsFollowDynamicDims) {
  const PoolPtr pool = MakePool(2);
  Plan plan;
  plan.tensors = {{.alignment = 8, .span_bytes = 8 * 16}};
  plan.steps = {KernelStep("count", 1, {TensorArgument(0)})};
  plan.steps[0].grid[0].expression = "($1+3)/4";
  const PlanPtr loaded = MustLoad(plan);
  Aligned<int64_t> counters(16);
  void* tensors[] = {counters.data()};
  EXPECT_EQ(kiln_plan_launch(loaded.get(), pool.get(), tensors, nullptr, nullptr),
            KILN_BAD_ARGUMENT);
  const int64_t dims[] = {0, 21};
  ASSERT_EQ(kiln_plan_launch(loaded.get(), pool.get(), tensors, nullptr, dims), KILN_OK)
      << kiln_error();
  for (int i = 0; i < 16; ++i) EXPECT_EQ(counters[i], i < 6 ? 1 : 0) << i;
  const int64_t negative[] = {0, -21};
  EXPECT_EQ(kiln_plan_launch(loaded.get(), pool.get(), tensors, nullptr, negative),
            KILN_BAD_ARGUMENT);
}

TEST(Launch, AnEmptyGridRunsNothing) {
  const PoolPtr pool = MakePool(2);
  Plan plan;
  plan.tensors = {{.alignment = 8, .span_bytes = 0}};
  plan.steps = {KernelStep("count", 0, {TensorArgument(0)})};
  const PlanPtr loaded = MustLoad(plan);
  void* tensors[] = {nullptr};
  EXPECT_EQ(kiln_plan_launch(loaded.get(), pool.get(), tensors, nullptr, nullptr), KILN_OK)
      << kiln_error();
}

TEST(Launch, RefusesPointersThatThePlanCannotRunOn) {
  constexpr int64_t n = 64;
  const PoolPtr pool = MakePool(2);
  Plan plan = ScalePlan(n, 2);
  plan.workspace_bytes = 128;
  const PlanPtr loaded = MustLoad(plan);
  Aligned<float> x(n), y(n), workspace(64);
  const auto launch = [&](void* a, void* b, void* space) {
    void* tensors[] = {a, b};
    return kiln_plan_launch(loaded.get(), pool.get(), tensors, space, nullptr);
  };
  EXPECT_EQ(launch(x.data(), y.data(), workspace.data()), KILN_OK);
  EXPECT_EQ(launch(x.data(), nullptr, workspace.data()), KILN_BAD_ARGUMENT);
  EXPECT_STREQ(kiln_error(), "tensor 1: null; needed: 256 bytes");
  EXPECT_EQ(launch(x.data() + 1, y.data(), workspace.data()), KILN_BAD_ARGUMENT);
  EXPECT_NE(std::string(kiln_error()).find("not aligned to 16 bytes"), std::string::npos);
  EXPECT_EQ(launch(x.data(), y.data(), nullptr), KILN_BAD_ARGUMENT);
  EXPECT_EQ(launch(x.data(), y.data(), workspace.data() + 4), KILN_BAD_ARGUMENT);
  EXPECT_EQ(kiln_plan_launch(loaded.get(), pool.get(), nullptr, workspace.data(), nullptr),
            KILN_BAD_ARGUMENT);
  void* tensors[] = {x.data(), y.data()};
  EXPECT_EQ(kiln_plan_launch(loaded.get(), nullptr, tensors, workspace.data(), nullptr),
            KILN_BAD_ARGUMENT);
  EXPECT_EQ(kiln_plan_launch(nullptr, pool.get(), tensors, workspace.data(), nullptr),
            KILN_BAD_ARGUMENT);
}

TEST(Launch, RefusesOutputsThatOverlapOtherTensors) {
  constexpr int64_t n = 64;
  const PoolPtr pool = MakePool(1);
  Plan plan = ScalePlan(n, 2);
  plan.tensors[1].written = true;
  const PlanPtr apart = MustLoad(plan);
  Aligned<float> memory(2 * n);
  const auto launch = [&](const PlanPtr& loaded, int64_t from, int64_t to) {
    void* tensors[] = {memory.data() + from, memory.data() + to};
    return kiln_plan_launch(loaded.get(), pool.get(), tensors, nullptr, nullptr);
  };
  EXPECT_EQ(launch(apart, 0, n), KILN_OK) << kiln_error();
  EXPECT_EQ(launch(apart, n, 0), KILN_OK) << kiln_error();
  for (int64_t to : {0, 4, 60}) {
    EXPECT_EQ(launch(apart, 0, to), KILN_BAD_ARGUMENT) << to;
    EXPECT_EQ(launch(apart, to, 0), KILN_BAD_ARGUMENT) << to;
    EXPECT_NE(std::string(kiln_error()).find("overlap tensor 0, 256 bytes"), std::string::npos)
        << kiln_error();
  }
  plan.tensors[1].alias_of = 0;
  const PlanPtr in_place = MustLoad(plan);
  EXPECT_EQ(launch(in_place, 0, 0), KILN_OK) << kiln_error();
  EXPECT_EQ(launch(in_place, 0, n), KILN_BAD_ARGUMENT);
  EXPECT_NE(std::string(kiln_error()).find("needed: the memory of tensor 0"), std::string::npos);
  EXPECT_EQ(launch(in_place, 0, 4), KILN_BAD_ARGUMENT);
}

TEST(Launch, EmptyTensorsOverlapNothing) {
  const PoolPtr pool = MakePool(1);
  Plan plan = ScalePlan(64, 0);
  plan.tensors[0] = {.alignment = 16, .span_bytes = 0};
  plan.tensors[1].written = true;
  plan.steps.clear();
  const PlanPtr loaded = MustLoad(plan);
  Aligned<float> memory(64);
  void* tensors[] = {memory.data() + 8, memory.data()};
  EXPECT_EQ(kiln_plan_launch(loaded.get(), pool.get(), tensors, nullptr, nullptr), KILN_OK)
      << kiln_error();
}

TEST(Launch, APoolWithTooFewThreadsIsRefused) {
  Plan plan = ScalePlan(64, 2);
  plan.needs["threads"] = 2;
  const PlanPtr loaded = MustLoad(plan);
  Aligned<float> x(64), y(64);
  void* tensors[] = {x.data(), y.data()};
  EXPECT_EQ(kiln_plan_launch(loaded.get(), MakePool(1).get(), tensors, nullptr, nullptr),
            KILN_UNSUPPORTED);
  EXPECT_STREQ(kiln_error(), "pool: 1 threads; the plan needs 2");
  EXPECT_EQ(kiln_plan_launch(loaded.get(), MakePool(2).get(), tensors, nullptr, nullptr), KILN_OK);
}

TEST(Launch, ManyThreadsMayLaunchOnePlanOnOnePool) {
  constexpr int64_t n = 1000;
  const PoolPtr pool = MakePool(3);
  const PlanPtr loaded = MustLoad(ScalePlan(n, 5));
  std::vector<std::thread> callers;
  for (int caller = 0; caller < 8; ++caller) {
    callers.emplace_back([&, caller] {
      Aligned<float> x(n, static_cast<float>(caller)), y(n);
      void* tensors[] = {x.data(), y.data()};
      for (int i = 0; i < 200; ++i) {
        y[n - 1] = 0;
        ASSERT_EQ(kiln_plan_launch(loaded.get(), pool.get(), tensors, nullptr, nullptr), KILN_OK);
        ASSERT_EQ(y[n - 1], 3.0f * caller + 1);
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
}

}  // namespace
}  // namespace kiln::runtime
