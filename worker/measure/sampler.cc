// SPDX-License-Identifier: Apache-2.0
#include "worker/measure/sampler.h"

#include <algorithm>
#include <utility>

#include "worker/measure/statistics.h"

namespace kiln::worker {
namespace {

constexpr int64_t kTimerCosts = 50;  // a sample lasts so many times what reading the clock costs
constexpr size_t kKeptSamples = 1024;

}  // namespace

Sampler::Sampler(Clock* clock, SamplerOptions options, std::function<bool()> launch,
                 std::function<void()> prepare)
    : clock_(clock), options_(options), launch_(std::move(launch)), prepare_(std::move(prepare)) {}

std::optional<Sampler::Reading> Sampler::Run(int64_t calls) {
  Reading reading;
  // Cold calls are timed one by one, since the first would warm the cache for the next.
  const bool alone = options_.one_by_one || options_.objective.cache == CacheState::kCold;
  const int64_t batch = alone ? 1 : calls;
  for (int64_t done = 0; done < calls; done += batch) {
    if (alone && prepare_) prepare_();
    const int64_t busy = clock_->BusyNs(), start = clock_->NowNs();
    for (int64_t i = 0; i < batch; ++i) {
      if (!launch_()) {
        failed_ = true;
        return std::nullopt;
      }
    }
    const int64_t end = clock_->NowNs();
    reading.wall_ns += end - start;
    reading.busy_ns += clock_->BusyNs() - busy;
  }
  return reading;
}

std::optional<int64_t> Sampler::Calibrate() {
  if (!Run(1)) return std::nullopt;
  // A cold sample's calls each wait for the cache to be emptied, which takes longer than they do:
  // only the timer's resolution asks for more than one.
  const bool cold = options_.objective.cache == CacheState::kCold;
  const int64_t enough =
      std::max(cold ? 0 : options_.min_sample_ns, kTimerCosts * clock_->CostNs());
  calls_ = 1;
  while (true) {
    const std::optional<Reading> reading = Run(calls_);
    if (!reading) return std::nullopt;
    if (reading->wall_ns >= enough || calls_ >= options_.max_calls) {
      Judge(*reading);  // its share of processor time counts as seen
      rejected_.clear();
      rejected_in_a_row_ = 0;
      return std::max<int64_t>(reading->wall_ns, 0) / calls_;
    }
    // Straight to the goal where the reading says how far it is, with a tenth to spare.
    const double per_call =
        std::max(1.0, static_cast<double>(reading->wall_ns) / static_cast<double>(calls_));
    const int64_t goal = static_cast<int64_t>(static_cast<double>(enough) * 1.1 / per_call) + 1;
    calls_ = std::min({std::max(goal, calls_ * 2), calls_ * 64, options_.max_calls});
  }
}

// Why a sample cannot count; empty if it can.
std::string Sampler::Judge(const Reading& reading) {
  if (reading.wall_ns <= 0) return "timer";
  const double per_call = static_cast<double>(reading.wall_ns) / static_cast<double>(calls_);
  if (per_call < options_.floor_ns) return "impossible";
  const double share = static_cast<double>(reading.busy_ns) / static_cast<double>(reading.wall_ns);
  const bool short_of_time = share < usual_share_ * (1 - options_.steal_tolerance);
  usual_share_ = std::max(usual_share_, share);
  return short_of_time ? "stolen" : "";
}

std::optional<Sample> Sampler::Take() {
  const std::optional<Reading> reading = Run(calls_);
  if (!reading) return std::nullopt;
  const std::string why = Judge(*reading);
  if (!why.empty()) {
    // A reading that cannot be is never kept; one of a busy machine is, in the end.
    const bool keep = why == "stolen" && rejected_in_a_row_ >= options_.max_rejected_in_a_row;
    ++rejected_[keep ? "kept_busy" : why];
    if (!keep) {
      ++rejected_in_a_row_;
      return std::nullopt;
    }
    usual_share_ *= 0.9;  // what was usual before is not any more
  }
  rejected_in_a_row_ = 0;
  const Sample sample{std::max<int64_t>(1, reading->wall_ns / calls_), reading->wall_ns};
  if (samples_.size() < kKeptSamples) samples_.push_back(sample.ns);
  return sample;
}

Measurement Sampler::Finish() const {
  Measurement measurement;
  const Summary summary = Summarise(samples_);
  measurement.timer = Timer::kClock;
  measurement.method_version = kMethodVersion;
  measurement.objective = options_.objective;
  measurement.samples_ns = samples_;
  measurement.samples = summary.samples;
  measurement.median_ns = summary.median;
  measurement.min_ns = summary.min;
  measurement.mean_ns = summary.mean;
  measurement.iqr_ns = summary.iqr;
  measurement.ci95_lo_ns = summary.ci95_lo;
  measurement.ci95_hi_ns = summary.ci95_hi;
  measurement.inner_iterations = calls_;
  measurement.rejected = rejected_;
  return measurement;
}

CacheChiller::CacheChiller(int64_t last_level_bytes)
    : memory_(std::max<int64_t>(1 << 20, 2 * last_level_bytes) / 8, 1) {}

void CacheChiller::operator()() {
  // Reading alone, line by line: dirty lines would have to be written back while the candidate
  // runs.
  uint64_t sum = 0;
  for (size_t i = 0; i < memory_.size(); i += 8) sum += memory_[i];
  __asm__ volatile("" : : "r"(sum) : "memory");
}

}  // namespace kiln::worker
