// SPDX-License-Identifier: Apache-2.0
#include "worker/measure/stopping.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "worker/measure/statistics.h"

namespace kiln::worker {
namespace {

// The half-width no longer moves: its deviation is below this share of its mean.
constexpr double kSettledShare = 0.05;

}  // namespace

double StoppingRule::relative_half_width() const {
  if (sorted_.empty()) return 1;
  const auto [lo, hi] = MedianRanks(samples());
  const double median = (static_cast<double>(sorted_[(sorted_.size() - 1) / 2]) +
                         static_cast<double>(sorted_[sorted_.size() / 2])) /
                        2;
  return median > 0 ? static_cast<double>(sorted_[hi - 1] - sorted_[lo - 1]) / 2 / median : 1;
}

bool StoppingRule::Settled() const {
  if (limits_.plateau == 0 || static_cast<int64_t>(widths_.size()) < limits_.plateau) return false;
  const double n = static_cast<double>(widths_.size());
  const double mean = std::accumulate(widths_.begin(), widths_.end(), 0.0) / n;
  double squares = 0;
  for (const double width : widths_) squares += (width - mean) * (width - mean);
  return std::sqrt(squares / (n - 1)) < kSettledShare * mean;
}

void StoppingRule::Add(int64_t ns, int64_t spent_ns) {
  sorted_.insert(std::upper_bound(sorted_.begin(), sorted_.end(), ns), ns);
  spent_ns_ += static_cast<double>(spent_ns);
  const double width = relative_half_width();
  widths_.push_back(width);
  if (static_cast<int64_t>(widths_.size()) > limits_.plateau) widths_.pop_front();
  if (!reason_.empty()) return;
  if (spent_ns_ >= limits_.total_ns) reason_ = "time";
  if (samples() >= limits_.max_samples) reason_ = "samples";
  // Too few samples have an interval of their extremes, which says nothing yet.
  if (samples() < std::max<int64_t>(limits_.min_samples, 2)) return;
  if (Settled()) reason_ = "plateau";
  if (width < limits_.half_width) reason_ = "interval";
}

}  // namespace kiln::worker
