// SPDX-License-Identifier: Apache-2.0
#include "worker/measure/statistics.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace kiln::worker {
namespace {

// Linear between the two nearest; `sorted` is not empty.
template <typename T>
double Quantile(const std::vector<T>& sorted, double fraction) {
  const double place = fraction * static_cast<double>(sorted.size() - 1);
  const size_t below = static_cast<size_t>(place);
  const size_t above = std::min(below + 1, sorted.size() - 1);
  const double share = place - static_cast<double>(below);
  return static_cast<double>(sorted[below]) * (1 - share) +
         static_cast<double>(sorted[above]) * share;
}

}  // namespace

std::pair<int64_t, int64_t> MedianRanks(int64_t n) {
  const double middle = static_cast<double>(n) / 2,
               reach = 0.98 * std::sqrt(static_cast<double>(n));
  const int64_t lo = static_cast<int64_t>(std::floor(middle - reach)) + 1;
  const int64_t hi = static_cast<int64_t>(std::ceil(middle + reach));
  return {std::clamp<int64_t>(lo, 1, std::max<int64_t>(n, 1)),
          std::clamp<int64_t>(hi, 1, std::max<int64_t>(n, 1))};
}

Summary Summarise(std::vector<int64_t> samples) {
  Summary summary;
  summary.samples = static_cast<int64_t>(samples.size());
  if (samples.empty()) return summary;
  std::sort(samples.begin(), samples.end());
  summary.median = Quantile(samples, 0.5);
  summary.min = static_cast<double>(samples.front());
  summary.mean =
      std::accumulate(samples.begin(), samples.end(), 0.0) / static_cast<double>(samples.size());
  summary.iqr = Quantile(samples, 0.75) - Quantile(samples, 0.25);
  const auto [lo, hi] = MedianRanks(summary.samples);
  summary.ci95_lo = static_cast<double>(samples[lo - 1]);
  summary.ci95_hi = static_cast<double>(samples[hi - 1]);
  return summary;
}

double Median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  return Quantile(values, 0.5);
}

double SignTest(int64_t wins, int64_t losses) {
  const int64_t n = wins + losses;
  if (n == 0) return 1;
  // Sum of C(n, i) / 2^n for i >= wins, in logarithms: n may be thousands.
  double total = 0;
  for (int64_t i = wins; i <= n; ++i) {
    const double log_term =
        std::lgamma(n + 1.0) - std::lgamma(i + 1.0) - std::lgamma(n - i + 1.0) - n * std::log(2.0);
    total += std::exp(log_term);
  }
  return std::min(total, 1.0);
}

PairedRatio Compare(const std::vector<double>& ours, const std::vector<double>& theirs) {
  PairedRatio result;
  std::vector<double> ratios;
  for (size_t i = 0; i < std::min(ours.size(), theirs.size()); ++i) {
    if (!(ours[i] > 0) || !(theirs[i] > 0)) continue;
    ratios.push_back(theirs[i] / ours[i]);
    result.wins += theirs[i] > ours[i];
    result.losses += theirs[i] < ours[i];
  }
  result.rounds = static_cast<int64_t>(ratios.size());
  if (ratios.empty()) return result;
  std::sort(ratios.begin(), ratios.end());
  const auto [lo, hi] = MedianRanks(result.rounds);
  result.median = Quantile(ratios, 0.5);
  result.lo = ratios[lo - 1];
  result.hi = ratios[hi - 1];
  result.p = SignTest(result.wins, result.losses);
  return result;
}

}  // namespace kiln::worker
