// SPDX-License-Identifier: Apache-2.0
#include "worker/measure/clock.h"

#include <time.h>

#include <algorithm>

namespace kiln::worker {
namespace {

int64_t Read(clockid_t clock) {
  timespec now;
  clock_gettime(clock, &now);
  return now.tv_sec * int64_t{1'000'000'000} + now.tv_nsec;
}

class RawClock : public Clock {
 public:
  RawClock() {
    // The smallest step that shows, and the mean of many readings: whichever is larger.
    constexpr int kReadings = 2000;
    int64_t step = 1'000'000'000, last = NowNs();
    const int64_t start = last;
    for (int i = 0; i < kReadings; ++i) {
      const int64_t now = NowNs();
      if (now > last) step = std::min(step, now - last);
      last = now;
    }
    cost_ns_ = std::max({step, (last - start) / kReadings, int64_t{1}});
  }
  int64_t NowNs() override { return Read(CLOCK_MONOTONIC_RAW); }
  int64_t BusyNs() override { return Read(CLOCK_PROCESS_CPUTIME_ID); }
  int64_t CostNs() override { return cost_ns_; }

 private:
  int64_t cost_ns_ = 1;
};

}  // namespace

std::unique_ptr<Clock> MakeRawClock() { return std::make_unique<RawClock>(); }

double ProbeClockMhz() {
  constexpr int64_t kAdditions = 1 << 20;
  double best = 0;
  for (int round = 0; round < 3; ++round) {
    const int64_t start = Read(CLOCK_MONOTONIC_RAW);
    uint64_t sum = static_cast<uint64_t>(start);
    for (int64_t i = 0; i < kAdditions; i += 16) {
      for (int j = 0; j < 16; ++j) {
        sum += 1;
        __asm__ volatile("" : "+r"(sum));  // one dependent addition each, none folded
      }
    }
    const int64_t spent = Read(CLOCK_MONOTONIC_RAW) - start;
    if (spent > 0)
      best = std::max(best, static_cast<double>(kAdditions) * 1000 / static_cast<double>(spent));
  }
  return best;
}

}  // namespace kiln::worker
