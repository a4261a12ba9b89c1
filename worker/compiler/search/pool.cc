// SPDX-License-Identifier: Apache-2.0
#include "worker/compiler/search/pool.h"

#include <algorithm>

namespace kiln::compiler {
namespace {

// Settings, legal or not, up to which the whole space is checked one by one: some 50 ms.
constexpr int64_t kLargestProduct = 1 << 15;
// Sampled from larger spaces. A prediction takes tens of microseconds, so that the pool costs less
// than one trial.
constexpr int kSamples = 1024;
// Then the model's own descent: the neighbours of the best `kBeam`, `kRounds` times.
constexpr size_t kBeam = 24;
constexpr int kRounds = 4;
// The first trials differ in one knob of so many, and in two at least: the model's favourites are
// alike, and wrong together.
constexpr int kApart = 3;

// Number of all settings, capped.
int64_t Product(const std::vector<Knob>& knobs) {
  int64_t product = 1;
  for (const Knob& knob : knobs) {
    product *= std::max<int64_t>(1, knob.values.size());
    if (product > kLargestProduct) return kLargestProduct + 1;
  }
  return product;
}

ScheduleSet Enumerate(const Space& space) {
  ScheduleSet legal;
  const std::vector<Knob>& knobs = space.knobs();
  const int64_t product = Product(knobs);
  for (int64_t index = 0; index < product; ++index) {
    Schedule schedule = space.default_schedule();
    int64_t rest = index;
    for (const Knob& knob : knobs) {
      if (knob.values.empty()) continue;
      const int64_t size = knob.values.size();
      schedule.knobs[knob.name] = knob.values[rest % size];
      rest /= size;
    }
    if (space.Check(schedule).ok()) legal.insert(std::move(schedule));
  }
  legal.insert(space.default_schedule());
  return legal;
}

}  // namespace

int Distance(const Schedule& a, const Schedule& b) {
  int distance = 0;
  for (const auto& [knob, value] : a.knobs) {
    auto other = b.knobs.find(knob);
    if (other == b.knobs.end() || other->second != value) ++distance;
  }
  return distance;
}

Pool MakePool(const Space& space, Ranking* ranking, SplitMix64* random) {
  Pool pool;
  if (Product(space.knobs()) <= kLargestProduct) {
    ScheduleSet legal = Enumerate(space);
    pool.ranked.assign(legal.begin(), legal.end());
    pool.whole = true;
    ranking->Sort(&pool.ranked);
    return pool;
  }
  ScheduleSet seen = {space.default_schedule()};
  for (int i = 0; i < kSamples; ++i) seen.insert(space.Sample(random->Next()));
  pool.ranked.assign(seen.begin(), seen.end());
  ranking->Sort(&pool.ranked);
  ScheduleSet expanded;
  for (int round = 0; round < kRounds; ++round) {
    std::vector<Schedule> beam(pool.ranked.begin(),
                               pool.ranked.begin() + std::min(kBeam, pool.ranked.size()));
    const size_t before = pool.ranked.size();
    for (const Schedule& schedule : beam) {
      if (!expanded.insert(schedule).second) continue;
      for (Schedule& neighbour : space.Neighbours(schedule)) {
        if (seen.insert(neighbour).second) pool.ranked.push_back(std::move(neighbour));
      }
    }
    if (pool.ranked.size() == before) break;
    ranking->Sort(&pool.ranked);
  }
  return pool;
}

std::vector<Schedule> PickApart(const std::vector<Schedule>& ranked, size_t count) {
  std::vector<Schedule> picked, near;
  const int knobs = ranked.empty() ? 0 : static_cast<int>(ranked.front().knobs.size());
  const int least = std::max(2, knobs / kApart);
  for (const Schedule& schedule : ranked) {
    if (picked.size() == count) return picked;
    const bool apart = std::all_of(picked.begin(), picked.end(), [&](const Schedule& other) {
      return Distance(schedule, other) >= least;
    });
    if (apart) {
      picked.push_back(schedule);
    } else if (near.size() < count) {
      near.push_back(schedule);
    }
  }
  for (size_t i = 0; i < near.size() && picked.size() < count; ++i) picked.push_back(near[i]);
  return picked;
}

}  // namespace kiln::compiler
