// SPDX-License-Identifier: Apache-2.0
#include "worker/measure/stages.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "worker/measure/statistics.h"

namespace kiln::worker {
namespace {

// A clock that gives nothing usable, or a machine that lets nothing through, ends a stage after so
// many attempts per sample that was wanted.
constexpr int64_t kAttemptsPerSample = 8;
constexpr int64_t kFewestRounds = 3;
constexpr int kTriesInRound = 8;  // more than a sampler rejects in a row

// Of a single run, for a plan that gets no more.
Measurement OneRun(const Sampler& sampler, const Measurement& shape, int64_t ns) {
  Measurement measurement = shape;
  measurement.samples_ns = {ns};
  measurement.samples = 1;
  measurement.median_ns = measurement.min_ns = measurement.mean_ns = static_cast<double>(ns);
  measurement.ci95_lo_ns = measurement.ci95_hi_ns = static_cast<double>(ns);
  measurement.inner_iterations = sampler.calls();
  return measurement;
}

}  // namespace

bool Warm(Clock* clock, int64_t ns, const std::function<bool()>& launch) {
  const int64_t start = clock->NowNs();
  do {
    if (!launch()) return false;
  } while (clock->NowNs() - start < ns);
  return true;
}

WarmUp WarmUntilSettled(Clock* clock, int64_t least_ns, int64_t most_ns,
                        const std::function<bool()>& launch,
                        const std::function<double()>& probe_mhz) {
  constexpr double kSame = 0.01;
  constexpr int64_t kBetweenProbes = 4;  // probes in the shortest warm-up
  WarmUp result;
  const int64_t start = clock->NowNs();
  while (!result.settled && (result.spent_ns < least_ns || result.spent_ns < most_ns)) {
    if (!Warm(clock, std::max<int64_t>(1, least_ns / kBetweenProbes), launch)) {
      result.launched = false;
      return result;
    }
    const double before = result.clock_mhz;
    result.clock_mhz = probe_mhz();
    result.spent_ns = clock->NowNs() - start;
    result.settled = result.spent_ns >= least_ns && before > 0 &&
                     std::abs(result.clock_mhz - before) <= kSame * before;
  }
  return result;
}

SearchResult MeasureForSearch(Sampler* sampler, Clock* clock, const SearchPolicy& policy,
                              const std::function<bool()>& launch) {
  SearchResult result;
  const std::optional<int64_t> impression = sampler->Calibrate();
  if (!impression) {
    result.launched = false;
    return result;
  }
  if (policy.best_ns > 0 && static_cast<double>(*impression) > kHopeless * policy.best_ns) {
    result.too_slow = true;
    result.measurement = OneRun(*sampler, sampler->Finish(), *impression);
    return result;
  }
  // What calibrating took has warmed the caches; this warms the clock of the core.
  if (!Warm(clock, policy.warm_up_ns, launch)) {
    result.launched = false;
    return result;
  }
  StoppingRule rule(policy.refine);
  const int64_t attempts = kAttemptsPerSample * policy.refine.max_samples;
  for (int64_t i = 0; i < attempts && !rule.done() && !sampler->failed(); ++i) {
    const std::optional<Sample> sample = sampler->Take();
    if (!sample) continue;
    rule.Add(sample->ns, sample->spent_ns);
    const bool screened = rule.samples() == kScreenSamples && policy.best_ns > 0 &&
                          Summarise(sampler->samples_ns()).median > kScreenedOut * policy.best_ns;
    if (screened) break;
  }
  result.launched = !sampler->failed();
  result.measurement = sampler->Finish();
  return result;
}

std::vector<std::vector<double>> Interleave(const std::vector<Sampler*>& samplers, Clock* clock,
                                            const Rounds& rounds,
                                            const std::function<bool()>& cancelled) {
  std::vector<std::vector<double>> times(samplers.size());
  std::vector<StoppingRule> rules;
  for (size_t i = 0; i < samplers.size(); ++i) {
    rules.emplace_back(StoppingLimits{.min_samples = rounds.min_rounds,
                                      .max_samples = rounds.max_rounds,
                                      .half_width = rounds.half_width,
                                      .total_ns = 1e18,
                                      .plateau = 64});
  }
  const int64_t start = clock->NowNs();
  for (int64_t round = 0; round < rounds.max_rounds && !cancelled(); ++round) {
    if (round >= kFewestRounds && static_cast<double>(clock->NowNs() - start) >= rounds.total_ns)
      break;
    bool all_done = !samplers.empty();
    for (auto& column : times) column.push_back(0);
    for (size_t step = 0; step < samplers.size(); ++step) {
      const size_t i = (step + static_cast<size_t>(round)) % samplers.size();
      // Again until it counts: a ratio needs all of a round, and a median its rounds.
      std::optional<Sample> sample;
      for (int tries = 0; !sample && tries < kTriesInRound; ++tries) sample = samplers[i]->Take();
      if (sample) {
        times[i].back() = static_cast<double>(sample->ns);
        rules[i].Add(sample->ns, sample->spent_ns);
      }
      all_done = all_done && rules[i].done();
    }
    if (all_done) break;
  }
  return times;
}

}  // namespace kiln::worker
