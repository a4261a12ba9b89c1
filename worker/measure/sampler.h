// SPDX-License-Identifier: Apache-2.0
// Samples of one plan: calls are batched until a sample is long enough for the timer, the cache is
// brought into the objective's state before each, and samples in which the processor was taken away
// are rejected and counted. One thread.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "proto/contract/outcome.h"
#include "worker/measure/clock.h"

namespace kiln::worker {

// Of this folder: changes whenever its numbers mean something else.
inline constexpr int kMethodVersion = 2;

struct SamplerOptions {
  Objective objective;
  int64_t min_sample_ns =
      1'000'000;  // a warm sample lasts at least so long, and 50 times the timer's cost
  int64_t max_calls = 1 << 20;    // per sample
  double steal_tolerance = 0.02;  // share of processor time that a sample may lack
  // Rejected in a row: then the next one is kept whatever it is, so that a busy machine still ends.
  int max_rejected_in_a_row = 5;
  double floor_ns = 0;      // no correct call can be faster; 0: not known
  bool one_by_one = false;  // every call is timed by itself, as cold ones are anyhow
};

struct Sample {
  int64_t ns = 0;        // per call
  int64_t spent_ns = 0;  // of all its calls
};

class Sampler {
 public:
  // `launch` runs the plan once and says whether it could; `prepare` runs, untimed, before every
  // call that is timed by itself: it brings the cache into the cold state, or data that calls
  // change back to what they were (may be empty). All outlive the sampler.
  Sampler(Clock* clock, SamplerOptions options, std::function<bool()> launch,
          std::function<void()> prepare);

  // Runs once untimed, then doubles the calls until a sample is long enough; the mean of that last
  // one is the answer: the first impression. Nothing: a launch failed.
  std::optional<int64_t> Calibrate();

  // One sample more. Nothing if it was rejected or a launch failed; see failed().
  std::optional<Sample> Take();

  bool failed() const { return failed_; }
  int64_t calls() const { return calls_; }
  const std::map<std::string, int64_t>& rejected() const { return rejected_; }
  const std::vector<int64_t>& samples_ns() const { return samples_; }  // accepted ones
  // Of the accepted samples; "kept_busy" among `rejected` counts those kept only because too many
  // were rejected before.
  Measurement Finish() const;

 private:
  struct Reading {
    int64_t wall_ns = 0, busy_ns = 0;
  };
  std::optional<Reading> Run(int64_t calls);
  std::string Judge(const Reading& reading);

  Clock* clock_;
  SamplerOptions options_;
  std::function<bool()> launch_;
  std::function<void()> prepare_;
  int64_t calls_ = 1;
  double usual_share_ = 0;  // busy / wall of an undisturbed sample: the largest seen
  int rejected_in_a_row_ = 0;
  bool failed_ = false;
  std::vector<int64_t> samples_;
  std::map<std::string, int64_t> rejected_;
};

// Reads and writes more than the last-level cache holds, so that nothing of a plan's data stays in
// it.
class CacheChiller {
 public:
  explicit CacheChiller(int64_t last_level_bytes);
  void operator()();

 private:
  std::vector<uint64_t> memory_;
};

}  // namespace kiln::worker
