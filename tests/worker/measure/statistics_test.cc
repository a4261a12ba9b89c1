// SPDX-License-Identifier: Apache-2.0
#include "worker/measure/statistics.h"

#include <algorithm>
#include <random>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "worker/measure/stopping.h"

namespace kiln::worker {
namespace {

using testing::DoubleNear;

TEST(Statistics, SummaryOfAKnownSequence) {
  std::vector<int64_t> samples;
  for (int64_t i = 30; i >= 1; --i) samples.push_back(i * 100);
  const Summary summary = Summarise(samples);
  EXPECT_EQ(summary.samples, 30);
  EXPECT_DOUBLE_EQ(summary.median, 1550);
  EXPECT_DOUBLE_EQ(summary.min, 100);
  EXPECT_DOUBLE_EQ(summary.mean, 1550);
  EXPECT_DOUBLE_EQ(summary.iqr, 1450);
  EXPECT_DOUBLE_EQ(summary.ci95_lo, 1000);  // rank 10
  EXPECT_DOUBLE_EQ(summary.ci95_hi, 2100);  // rank 21
  EXPECT_EQ(Summarise({}).samples, 0);
  EXPECT_DOUBLE_EQ(Summarise({7}).ci95_hi, 7);
}

TEST(Statistics, OrderStatisticRanks) {
  EXPECT_EQ(MedianRanks(30), std::make_pair(int64_t{10}, int64_t{21}));
  EXPECT_EQ(MedianRanks(100), std::make_pair(int64_t{41}, int64_t{60}));
  EXPECT_EQ(MedianRanks(3), std::make_pair(int64_t{1}, int64_t{3}));
  EXPECT_EQ(MedianRanks(1), std::make_pair(int64_t{1}, int64_t{1}));
}

TEST(Statistics, TheIntervalCoversTheMedianInNinetyFivePercentOfSkewedSamples) {
  std::mt19937_64 random(1);
  std::exponential_distribution<double> skewed(1.0);
  int covered = 0;
  constexpr int kTrials = 2000;
  for (int i = 0; i < kTrials; ++i) {
    std::vector<int64_t> samples;
    for (int j = 0; j < 30; ++j) samples.push_back(static_cast<int64_t>(1e6 * skewed(random)));
    const Summary summary = Summarise(samples);
    covered += summary.ci95_lo <= 693147 && 693147 <= summary.ci95_hi;  // ln 2
  }
  EXPECT_GT(covered, kTrials * 93 / 100);
}

TEST(Statistics, SignTestIsTheBinomialTail) {
  EXPECT_DOUBLE_EQ(SignTest(0, 0), 1);
  EXPECT_THAT(SignTest(5, 0), DoubleNear(1.0 / 32, 1e-12));
  EXPECT_THAT(SignTest(8, 2), DoubleNear(56.0 / 1024, 1e-12));
  EXPECT_DOUBLE_EQ(SignTest(0, 10), 1);
  EXPECT_LT(SignTest(3000, 2000), 1e-20);
}

TEST(Statistics, PairedRatioSeesThroughCommonDrift) {
  std::vector<double> ours, theirs;
  for (int i = 0; i < 40; ++i) {
    const double drift = 1 + 0.05 * i;
    ours.push_back(100 * drift), theirs.push_back(110 * drift);
  }
  ours.push_back(0), theirs.push_back(50);  // rejected in one of them
  const PairedRatio ratio = Compare(ours, theirs);
  EXPECT_EQ(ratio.rounds, 40);
  EXPECT_THAT(ratio.median, DoubleNear(1.1, 1e-9));
  EXPECT_THAT(ratio.hi - ratio.lo, DoubleNear(0, 1e-9));
  EXPECT_EQ(ratio.wins, 40);
  EXPECT_LT(ratio.p, 1e-9);
}

TEST(StoppingRule, StopsWhenTheIntervalIsNarrow) {
  StoppingRule rule({.min_samples = 5, .max_samples = 1000, .half_width = 0.01, .plateau = 0});
  int64_t n = 0;
  while (!rule.done()) rule.Add(1000 + n++ % 3, 1);
  EXPECT_EQ(rule.reason(), "interval");
  EXPECT_EQ(n, 5);
}

TEST(StoppingRule, NeverStopsOnOneSampleByItsInterval) {
  StoppingRule rule({.min_samples = 1, .max_samples = 10, .half_width = 0.5});
  rule.Add(100, 1);
  EXPECT_FALSE(rule.done());
}

TEST(StoppingRule, StopsOnAPlateauOfNoise) {
  std::mt19937_64 random(3);
  std::uniform_real_distribution<double> wide(0.5, 1.5);
  StoppingRule rule({.min_samples = 10,
                     .max_samples = 100000,
                     .half_width = 1e-6,
                     .total_ns = 1e18,
                     .plateau = 64});
  while (!rule.done()) rule.Add(static_cast<int64_t>(1e6 * wide(random)), 1);
  EXPECT_EQ(rule.reason(), "plateau");
  EXPECT_LT(rule.samples(), 2000);
}

TEST(StoppingRule, StopsAtItsBoundsWhateverTheNoise) {
  StoppingRule samples({.min_samples = 3, .max_samples = 7, .half_width = 0.001, .plateau = 0});
  for (int64_t i = 1; !samples.done(); ++i) samples.Add(i * 1000, 1);
  EXPECT_EQ(samples.reason(), "samples");
  EXPECT_EQ(samples.samples(), 7);
  StoppingRule time({.min_samples = 3, .max_samples = 100, .half_width = 0.001, .total_ns = 1e6});
  time.Add(1000, 2'000'000);
  EXPECT_EQ(time.reason(), "time");
}

}  // namespace
}  // namespace kiln::worker
