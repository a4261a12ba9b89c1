// SPDX-License-Identifier: Apache-2.0
#include "worker/measure/sampler.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/worker/measure/fake_machine.h"

namespace kiln::worker {
namespace {

TEST(Sampler, BatchesCallsUntilASampleIsLongEnough) {
  FakeClock clock;
  Sampler tiny(
      &clock, {}, [&] { return clock.Spend(40), true; }, nullptr);
  ASSERT_EQ(tiny.Calibrate(), 40);
  EXPECT_GE(tiny.calls() * 40, 1'000'000);
  EXPECT_LT(tiny.calls() * 40, 4'000'000);
  const auto sample = tiny.Take();
  ASSERT_TRUE(sample.has_value());
  EXPECT_EQ(sample->ns, 40);

  Sampler large(
      &clock, {}, [&] { return clock.Spend(5'000'000), true; }, nullptr);
  ASSERT_TRUE(large.Calibrate().has_value());
  EXPECT_EQ(large.calls(), 1);
}

TEST(Sampler, ASampleOutlastsACoarseTimerFiftyTimes) {
  FakeClock clock;
  clock.cost_ns = 100'000;
  Sampler sampler(
      &clock, {}, [&] { return clock.Spend(1000), true; }, nullptr);
  ASSERT_TRUE(sampler.Calibrate().has_value());
  EXPECT_GE(sampler.calls() * 1000, 4'900'000);
}

TEST(Sampler, ColdSamplesChillTheCacheBeforeEveryCall) {
  FakeClock clock;
  int chills = 0, launches = 0;
  Sampler sampler(
      &clock, {.objective = {CacheState::kCold, Burst::kBurst}},
      [&] { return ++launches, clock.Spend(100), true; },
      [&] { ++chills, clock.Spend(1'000'000); });
  ASSERT_TRUE(sampler.Calibrate().has_value());
  EXPECT_EQ(chills, launches);
  const auto sample = sampler.Take();
  EXPECT_EQ(chills, launches);
  EXPECT_LT(sample->ns, 200);  // the chilling is not timed
}

// A kernel that works in place, and whose data would not stay what they are.
TEST(Sampler, DataIsMadeWhatItWasBeforeEveryCallThatIsTimedByItself) {
  FakeClock clock;
  double value = 1;
  std::vector<double> seen;
  const auto launch = [&] {
    seen.push_back(value);
    value *= 2;
    clock.Spend(50'000);
    return true;
  };
  const auto restore = [&] {
    value = 1;
    clock.Spend(1'000'000);  // is not part of a sample
  };
  Sampler sampler(&clock, {.one_by_one = true}, launch, restore);
  ASSERT_TRUE(sampler.Calibrate().has_value());
  EXPECT_GE(sampler.calls(), 20);  // a sample is as long as any other
  const auto sample = sampler.Take();
  ASSERT_TRUE(sample.has_value());
  EXPECT_NEAR(static_cast<double>(sample->ns), 50'000, 200);
  for (double at : seen) ASSERT_EQ(at, 1);
}

TEST(Sampler, RejectsSamplesInWhichTheProcessorWasTakenAway) {
  FakeClock clock;
  int call = 0;
  Sampler sampler(
      &clock, {},
      [&] {
        clock.Spend(2'000'000);
        if (++call % 4 == 0) clock.Steal(200'000);
        return true;
      },
      nullptr);
  ASSERT_TRUE(sampler.Calibrate().has_value());
  for (int i = 0; i < 40; ++i) sampler.Take();
  EXPECT_EQ(sampler.rejected().at("stolen"), 10);
  const Measurement measurement = sampler.Finish();
  EXPECT_EQ(measurement.samples, 30);
  EXPECT_NEAR(measurement.median_ns, 2'000'000, 100);
  EXPECT_NEAR(measurement.mean_ns, 2'000'000, 100);
}

TEST(Sampler, AMachineThatStaysBusyStillEnds) {
  FakeClock clock;
  bool busy = false;
  Sampler sampler(
      &clock, {},
      [&] {
        clock.Spend(2'000'000);
        if (busy) clock.Steal(2'000'000);
        return true;
      },
      nullptr);
  ASSERT_TRUE(sampler.Calibrate().has_value());
  busy = true;
  int attempts = 0;
  while (sampler.samples_ns().size() < 10 && attempts < 200) sampler.Take(), ++attempts;
  EXPECT_EQ(sampler.samples_ns().size(), 10u);
  EXPECT_GT(sampler.rejected().at("stolen"), 0);
  EXPECT_GT(sampler.rejected().at("kept_busy"), 0);
}

TEST(Sampler, ATimerThatStandsStillOrRunsBackwardsGivesNoSample) {
  FakeClock clock;
  clock.cost_ns = 0;
  bool backwards = false;
  Sampler sampler(
      &clock, {.max_calls = 4}, [&] { return clock.Spend(backwards ? -500 : 0), true; }, nullptr);
  ASSERT_TRUE(sampler.Calibrate().has_value());
  EXPECT_FALSE(sampler.Take().has_value());
  backwards = true;
  for (int i = 0; i < 20; ++i) EXPECT_FALSE(sampler.Take().has_value());
  EXPECT_EQ(sampler.rejected().at("timer"), 21);
  EXPECT_EQ(sampler.Finish().samples, 0);
}

TEST(Sampler, TimesBelowThePossibleAreNeverSamples) {
  FakeClock clock;
  Sampler skipped(
      &clock, {.floor_ns = 100}, [&] { return clock.Spend(3), true; }, nullptr);
  ASSERT_TRUE(skipped.Calibrate().has_value());
  for (int i = 0; i < 20; ++i) EXPECT_FALSE(skipped.Take().has_value());
  EXPECT_EQ(skipped.rejected().at("impossible"), 20);
}

TEST(Sampler, AFailedLaunchIsSeen) {
  FakeClock clock;
  Sampler sampler(
      &clock, {}, [] { return false; }, nullptr);
  EXPECT_FALSE(sampler.Calibrate().has_value());
  EXPECT_TRUE(sampler.failed());
}

TEST(RawClock, DurationsAreNeverNegativeAndWorkCostsProcessorTime) {
  auto clock = MakeRawClock();
  EXPECT_GT(clock->CostNs(), 0);
  const int64_t start = clock->NowNs(), busy = clock->BusyNs();
  volatile double sum = 0;
  for (int i = 0; i < 1000000; ++i) sum = sum + i;
  EXPECT_GT(clock->NowNs(), start);
  EXPECT_GT(clock->BusyNs(), busy);
  EXPECT_GT(ProbeClockMhz(), 100);
}

}  // namespace
}  // namespace kiln::worker
