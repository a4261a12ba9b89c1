// SPDX-License-Identifier: Apache-2.0
// Numbers about samples: medians with intervals by order statistics (times are skewed, so nothing
// here assumes a normal distribution), paired ratios, the sign test. Pure.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

namespace kiln::worker {

struct Summary {
  int64_t samples = 0;
  double median = 0, min = 0, mean = 0, iqr = 0;
  double ci95_lo = 0, ci95_hi = 0;  // of the median; the extremes where there are too few samples
  // Half the interval's width over the median; 1 without samples.
  double relative_half_width() const { return median > 0 ? (ci95_hi - ci95_lo) / 2 / median : 1; }
};
Summary Summarise(std::vector<int64_t> samples);

double Median(std::vector<double> values);  // 0 of none

// Ranks (from 1) of the order statistics n/2 -+ 0.98 sqrt(n) that hold the median with 95 %: 10 and
// 21 of 30.
std::pair<int64_t, int64_t> MedianRanks(int64_t n);

// One-sided: the chance that at least `wins` of `wins + losses` fair coins show heads.
double SignTest(int64_t wins, int64_t losses);

// Two plans measured in the same rounds: `theirs[i] / ours[i]`, so that above 1 ours is faster.
struct PairedRatio {
  double median = 1, lo = 1, hi = 1;  // with its 95 % interval
  int64_t rounds = 0, wins = 0, losses = 0;
  double p = 1;  // that so many wins are luck
};
// Over the rounds that both have (times above 0).
PairedRatio Compare(const std::vector<double>& ours, const std::vector<double>& theirs);

}  // namespace kiln::worker
