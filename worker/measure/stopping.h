// SPDX-License-Identifier: Apache-2.0
// When there are enough samples. Takes one number per call and looks at no clock, so that invented
// numbers test it.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

namespace kiln::worker {

struct StoppingLimits {
  int64_t min_samples = 3;
  int64_t max_samples = 10;
  double half_width = 0.02;  // of the 95 % interval of the median, over the median
  double total_ns = 2e9;     // of all samples together, each weighed with its calls
  int64_t plateau = 64;  // stop when the half-width of the last so many calls has settled; 0: never
};

class StoppingRule {
 public:
  explicit StoppingRule(const StoppingLimits& limits) : limits_(limits) {}

  // `ns` per call, of a sample that took `spent_ns` in all.
  void Add(int64_t ns, int64_t spent_ns);
  bool done() const { return !reason_.empty(); }
  // "interval", "plateau", "samples" or "time"; empty while it goes on.
  const std::string& reason() const { return reason_; }
  int64_t samples() const { return static_cast<int64_t>(sorted_.size()); }
  double relative_half_width() const;

 private:
  bool Settled() const;

  StoppingLimits limits_;
  std::vector<int64_t> sorted_;
  std::deque<double> widths_;  // the last `plateau` half-widths
  double spent_ns_ = 0;
  std::string reason_;
};

}  // namespace kiln::worker
