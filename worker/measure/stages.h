// SPDX-License-Identifier: Apache-2.0
// How much time a plan deserves: few samples for all, more for those that may win, interleaved
// rounds for the finalists. Pure but for the sampler's clock.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "worker/measure/sampler.h"
#include "worker/measure/stopping.h"

namespace kiln::worker {

inline constexpr double kHopeless = 3.0;  // times the best after one run: no more samples
inline constexpr double kScreenedOut =
    1.5;  // times the best median after the screen: no more samples
inline constexpr int64_t kScreenSamples = 3;

struct SearchPolicy {
  double best_ns = 0;               // median of the best so far; 0: none
  StoppingLimits refine;            // for those that the screen lets through
  int64_t warm_up_ns = 25'000'000;  // of launches before the first sample; sustained: see Warm
};

struct SearchResult {
  bool launched = true;     // false: a launch failed
  bool too_slow = false;    // hopeless after one run: `measurement` has that run alone
  Measurement measurement;  // no samples: the clock gave only impossible times
};

// Screens, and refines what may win.
SearchResult MeasureForSearch(Sampler* sampler, Clock* clock, const SearchPolicy& policy,
                              const std::function<bool()>& launch);

// Launches until `ns` have gone by, at least once. False: a launch failed.
bool Warm(Clock* clock, int64_t ns, const std::function<bool()>& launch);

struct WarmUp {
  bool launched = true;  // false: a launch failed
  bool settled = false;  // two clock rates in a row within 1 %
  int64_t spent_ns = 0;
  double clock_mhz = 0;  // the last one
};

// Launches for at least `least_ns`, and on until `probe_mhz` gives the same clock rate twice, but
// for no longer than `most_ns`.
WarmUp WarmUntilSettled(Clock* clock, int64_t least_ns, int64_t most_ns,
                        const std::function<bool()>& launch,
                        const std::function<double()>& probe_mhz);

struct Rounds {
  int64_t min_rounds = 30;
  int64_t max_rounds = 512;
  double half_width = 0.005;  // of every entrant's interval
  double total_ns = 4e9;      // wall clock of all rounds together; at least three rounds are run
};

// One sample of every sampler in turn, round after round, in an order that is turned by one each
// round, so that drift and the neighbour's cache hit all alike. Returns times per round and
// sampler, 0 where a sample was rejected; stops early if `cancelled` says so.
std::vector<std::vector<double>> Interleave(const std::vector<Sampler*>& samplers, Clock* clock,
                                            const Rounds& rounds,
                                            const std::function<bool()>& cancelled);

}  // namespace kiln::worker
