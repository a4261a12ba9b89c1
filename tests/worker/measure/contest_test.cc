// SPDX-License-Identifier: Apache-2.0
#include "worker/measure/contest.h"

#include <random>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/worker/measure/fake_machine.h"
#include "worker/measure/stages.h"

namespace kiln::worker {
namespace {

using testing::ElementsAre;

// Finalists on a made-up machine, measured round-robin.
std::vector<Entrant> Measure(std::vector<Entrant> entrants, const std::vector<double>& costs,
                             uint64_t seed, bool interleaved, double drift_per_second = 0,
                             double noise = 0.003) {
  FakeClock clock;
  std::mt19937_64 random(seed);
  std::vector<std::unique_ptr<Sampler>> samplers;
  for (const double cost : costs) {
    FakeKernel kernel{&clock, cost, noise,
                      [=](int64_t now) { return 1 + drift_per_second * now * 1e-9; }, &random};
    samplers.push_back(std::make_unique<Sampler>(&clock, SamplerOptions{}, kernel, nullptr));
    samplers.back()->Calibrate();
  }
  if (interleaved) {
    std::vector<Sampler*> all;
    for (auto& sampler : samplers) all.push_back(sampler.get());
    const auto times =
        Interleave(all, &clock, {.min_rounds = 30, .max_rounds = 60}, [] { return false; });
    for (size_t i = 0; i < entrants.size(); ++i) entrants[i].rounds_ns = times[i];
  } else {
    for (size_t i = 0; i < entrants.size(); ++i) {
      for (int round = 0; round < 60; ++round) {
        if (const auto sample = samplers[i]->Take()) entrants[i].rounds_ns.push_back(sample->ns);
      }
    }
  }
  return entrants;
}

Entrant Named(const std::string& schedule) { return {.schedule = schedule}; }

TEST(Contest, InterleavingFindsTheTrueBestUnderDrift) {
  // The machine slows down by half while they run; the last one is 8 % faster than the others.
  const std::vector<double> costs = {2e6, 2e6, 2e6, 1.84e6};
  const std::vector<Entrant> entrants = {Named("a"), Named("b"), Named("c"), Named("d")};
  EXPECT_EQ(Decide(Measure(entrants, costs, 1, true, 1.0)).winner, 3);
  // One after the other, the first one looks best.
  const auto apart = Measure(entrants, costs, 1, false, 1.0);
  EXPECT_LT(Median(apart[0].rounds_ns), Median(apart[3].rounds_ns));
}

TEST(Contest, IdenticalKernelsGiveTheSameWinnerAHundredTimes) {
  for (uint64_t seed = 0; seed < 100; ++seed) {
    const auto entrants =
        Measure({Named("c"), Named("a"), Named("b")}, {2e6, 2e6, 2e6}, seed, true, 0.1, 0.01);
    EXPECT_EQ(Decide(entrants).winner, 1) << seed;
  }
}

// C26: sizes that lie within 2 % of one another, tuned ten times.
TEST(Contest, NearTiesBreakTheSameWayInEveryRun) {
  std::vector<Entrant> entrants;
  std::vector<double> costs;
  for (int i = 0; i < 15; ++i) {
    entrants.push_back(Named("block=" + std::to_string(10 + i)));
    costs.push_back(1e6 * (i < 8 ? 1 + 0.0005 * i : 1.3));
  }
  for (uint64_t seed = 0; seed < 10; ++seed) {
    const auto result = Decide(Measure(entrants, costs, seed, true));
    EXPECT_EQ(result.winner, 0) << seed;
    EXPECT_EQ(result.ties.size(), 8u) << seed;
  }
}

TEST(Contest, TheIncumbentStaysAmongEqualsAndFallsToABetterOne) {
  std::vector<Entrant> entrants = {Named("a"), Named("z")};
  entrants[1].incumbent = true;
  auto equal = Measure(entrants, {1e6, 1.005e6}, 7, true);
  EXPECT_EQ(Decide(equal).winner, 1);
  EXPECT_FALSE(Beats(equal[0], equal[1]));
  auto better = Measure(entrants, {1e6, 1.06e6}, 7, true);
  EXPECT_EQ(Decide(better).winner, 0);
  EXPECT_TRUE(Beats(better[0], better[1]));
  EXPECT_FALSE(Beats(better[1], better[0]));
}

TEST(Contest, TheLibraryWinsOnlyBeyondTheNoiseAndOnlyWhereItMay) {
  std::vector<Entrant> entrants = {Named("library/1"), Named("own/1 x=1")};
  entrants[0].library = true;
  EXPECT_EQ(Decide(Measure(entrants, {0.995e6, 1e6}, 3, true)).winner, 1);
  auto faster = Measure(entrants, {0.9e6, 1e6}, 3, true);
  EXPECT_EQ(Decide(faster).winner, 0);
  faster[0].eligible = false;
  EXPECT_EQ(Decide(faster).winner, 1);
  EXPECT_THAT(Decide(faster).ties, ElementsAre(1));
}

TEST(Contest, NoiseMakesNoEqualsOfWhatIsFarApart) {
  Entrant library = Named("library/1"), own = Named("own/1 x=1");
  library.library = true;
  library.rounds_ns = {80, 130, 70, 95, 60, 85, 120, 75};
  own.rounds_ns = {100, 95, 140, 90, 110, 105, 98, 150};
  EXPECT_EQ(Decide({own, library}).winner, 1);
}

TEST(Contest, WithoutRoundsOrEntrantsNobodyWins) {
  EXPECT_EQ(Decide({}).winner, -1);
  EXPECT_EQ(Decide({Named("a")}).winner, -1);
  Entrant rejected = Named("a");
  rejected.rounds_ns = {0, 0, 0};
  EXPECT_EQ(Decide({rejected}).winner, -1);
}

// One lucky round does not win: the chance is counted.
TEST(Contest, AFewRoundsProveNothing) {
  Entrant quick = Named("a"), slow = Named("b");
  quick.rounds_ns = {90, 91, 90}, slow.rounds_ns = {100, 101, 100};
  EXPECT_FALSE(Beats(quick, slow));
}

TEST(Stages, AHopelessCandidateGetsOneRun) {
  FakeClock clock;
  int64_t launches = 0;
  const auto launch = [&] { return ++launches, clock.Spend(1'000'000'000), true; };
  Sampler sampler(&clock, {}, launch, nullptr);
  const SearchResult result = MeasureForSearch(&sampler, &clock, {.best_ns = 1e6}, launch);
  EXPECT_TRUE(result.too_slow);
  EXPECT_EQ(launches, 2);  // the untimed one and one more
  EXPECT_EQ(result.measurement.samples, 1);
  EXPECT_NEAR(result.measurement.median_ns, 1e9, 1e3);
}

TEST(Stages, WarmingEndsWhenTheClockHasSettled) {
  FakeClock clock;
  const auto launch = [&] { return clock.Spend(100'000), true; };
  double mhz = 4000;  // falls with heat, to 3000
  const auto cooling = [&] { return mhz = std::max(3000.0, mhz - 200); };
  const WarmUp settled = WarmUntilSettled(&clock, 10'000'000, 1'000'000'000, launch, cooling);
  EXPECT_TRUE(settled.launched && settled.settled);
  EXPECT_EQ(settled.clock_mhz, 3000);
  EXPECT_GE(settled.spent_ns, 10'000'000);
  EXPECT_LT(settled.spent_ns, 50'000'000);

  const WarmUp steady =
      WarmUntilSettled(&clock, 10'000'000, 1'000'000'000, launch, [] { return 3000.0; });
  EXPECT_TRUE(steady.settled);
  EXPECT_GE(steady.spent_ns, 10'000'000);  // a clock that stands still is no reason to be brief

  int turn = 0;
  const auto restless = [&] { return ++turn % 2 == 0 ? 3000.0 : 3500.0; };
  const WarmUp never = WarmUntilSettled(&clock, 10'000'000, 100'000'000, launch, restless);
  EXPECT_FALSE(never.settled);
  EXPECT_GE(never.spent_ns, 100'000'000);
  EXPECT_LT(never.spent_ns, 110'000'000);

  EXPECT_FALSE(WarmUntilSettled(
                   &clock, 1, 2, [] { return false; }, restless)
                   .launched);
}

TEST(Stages, ScreensOutWhatCannotWinAndRefinesTheRest) {
  FakeClock clock;
  std::mt19937_64 random(1);
  const auto measure = [&](double cost) {
    FakeKernel kernel{&clock, cost, 0.003, [](int64_t) { return 1.0; }, &random};
    Sampler sampler(&clock, {}, kernel, nullptr);
    StoppingLimits refine{.min_samples = 10, .max_samples = 30};
    return MeasureForSearch(&sampler, &clock,
                            {.best_ns = 1e6, .refine = refine, .warm_up_ns = 1000}, kernel)
        .measurement.samples;
  };
  EXPECT_EQ(measure(1.8e6), kScreenSamples);
  EXPECT_GE(measure(1.1e6), 10);
}

// A ratio of medians and a median of ratios are far apart where each round lacks somebody.
TEST(Stages, RoundsAreWholeOnABusyMachine) {
  FakeClock clock;
  int calls = 0;
  bool busy = false;  // then three samples of four lose the processor
  const auto launch = [&](int64_t ns) {
    return [&, ns] {
      clock.Spend(ns);
      if (busy && ++calls % 4 != 0) clock.Steal(ns);
      return true;
    };
  };
  Sampler a(&clock, {}, launch(2'000'000), nullptr), b(&clock, {}, launch(6'000'000), nullptr);
  ASSERT_TRUE(a.Calibrate().has_value() && b.Calibrate().has_value());
  busy = true;
  const auto times =
      Interleave({&a, &b}, &clock, {.min_rounds = 10, .max_rounds = 20, .half_width = 0},
                 [] { return false; });
  ASSERT_GE(times[0].size(), 10u);
  for (size_t round = 0; round < times[0].size(); ++round) {
    EXPECT_GT(times[0][round], 0) << round;
    EXPECT_GT(times[1][round], 0) << round;
  }
  EXPECT_GT(a.Finish().rejected.at("stolen"), 0);
}

TEST(Stages, InterleavingStopsByTimeAndByCancel) {
  FakeClock clock;
  Sampler slow(
      &clock, {}, [&] { return clock.Spend(1'000'000'000), true; }, nullptr);
  slow.Calibrate();
  EXPECT_EQ(Interleave({&slow}, &clock, {.total_ns = 2e9}, [] { return false; })[0].size(), 3u);
  EXPECT_EQ(Interleave({&slow}, &clock, {.total_ns = 2e9}, [] { return true; })[0].size(), 0u);
}

}  // namespace
}  // namespace kiln::worker
