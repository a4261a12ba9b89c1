// SPDX-License-Identifier: Apache-2.0
// MakeSearch: seeds; a start that the model ranks and that is spread out; then, in turn, the best
// one's neighbours, the pool under the corrected model, and children of the best few, with a random
// one now and then.
#include <algorithm>
#include <iterator>
#include <limits>
#include <optional>
#include <set>
#include <utility>

#include "worker/compiler/search/pool.h"
#include "worker/compiler/search/random.h"
#include "worker/compiler/search/ranking.h"
#include "worker/compiler/search/search.h"

namespace kiln::compiler {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
// Share of proposals drawn blindly: what neither the model nor the neighbourhood would lead to.
constexpr int kRandomPercent = 10;
// Parents of the next generation.
constexpr size_t kElite = 8;
// Children bred for one proposal; the corrected model keeps the best.
constexpr int kLitter = 24;
// Draws without a new schedule after which a space too large to list counts as exhausted.
constexpr int kFruitlessDraws = 2000;
// A gain smaller than this, or than the measurements' own intervals, is noise.
constexpr double kSmallestGain = 0.01;
// Outcomes without such a gain after which more would not pay: at least these, or this share of the
// budget.
constexpr int kLeastPatience = 48;
constexpr double kPatienceShare = 0.3;

struct Measured {
  double ns;
  Schedule schedule;
  bool operator<(const Measured& other) const {
    if (ns != other.ns) return ns < other.ns;
    return ScheduleLess()(schedule, other.schedule);
  }
};

// Half the width of the median's interval, relative to it.
double RelativeNoise(const Measurement& m) {
  if (m.median_ns <= 0 || m.ci95_hi_ns <= m.ci95_lo_ns) return 0;
  return (m.ci95_hi_ns - m.ci95_lo_ns) / 2 / m.median_ns;
}

class GuidedSearch : public Search {
 public:
  GuidedSearch(const Space& space, const SearchOptions& options,
               std::function<double(const Schedule&)> predict)
      : space_(space), options_(options), random_(options.seed), ranking_(std::move(predict)) {
    closed_.insert(options.blocked.begin(), options.blocked.end());
    for (const Outcome& outcome : options.known) {
      closed_.insert(outcome.schedule);
      Remember(outcome);
    }
  }

  std::vector<Schedule> Propose(int count) override {
    std::vector<Schedule> batch;
    while (static_cast<int>(batch.size()) < count && stop_reason_.empty()) {
      if (proposed_ >= options_.max_trials) {
        stop_reason_ = "trials";
      } else if (NoLongerPays()) {
        stop_reason_ = "more would not pay";
      } else if (std::optional<Schedule> next = Next()) {
        closed_.insert(*next);
        ++proposed_;
        batch.push_back(*std::move(next));
      } else {
        stop_reason_ = "space exhausted";
      }
    }
    return batch;
  }

  void Observe(const Outcome& outcome) override {
    closed_.insert(outcome.schedule);
    ++since_gain_;
    Remember(outcome);
  }

  std::string StopReason() const override { return stop_reason_; }

 private:
  void Remember(const Outcome& outcome) {
    learnt_ = true;
    const bool timed = outcome.measurement.has_value() && outcome.measurement->median_ns > 0;
    if (!timed) {
      ranking_.LearnFailure(outcome.schedule);
      return;
    }
    const double ns = outcome.measurement->median_ns;
    ranking_.Learn(outcome.schedule, ns);
    if (outcome.stage != Stage::kMeasured) return;
    elite_.insert({ns, outcome.schedule});
    if (elite_.size() > kElite) elite_.erase(std::prev(elite_.end()));
    // Small gains add up: the mark moves only when the sum of them is more than noise.
    const double noise =
        std::max({kSmallestGain, RelativeNoise(*outcome.measurement), mark_noise_});
    if (mark_ns_ == kInfinity || ns < mark_ns_ * (1 - noise)) {
      mark_ns_ = ns;
      mark_noise_ = RelativeNoise(*outcome.measurement);
      since_gain_ = 0;
    }
  }

  bool NoLongerPays() {
    const int patience =
        std::max(kLeastPatience, static_cast<int>(options_.max_trials * kPatienceShare));
    if (since_gain_ < patience) return false;
    return elite_.empty() || !FreshNeighbour(*elite_.begin()).has_value();
  }

  std::optional<Schedule> Next() {
    while (seed_ < options_.seeds.size()) {
      const Schedule& seed = options_.seeds[seed_++];
      if (Open(seed)) return seed;
    }
    if (!started_) Start();
    while (start_at_ < start_.size()) {
      const Schedule& schedule = start_[start_at_++];
      if (IsFresh(schedule)) return schedule;
    }
    if (!random_.Chance(kRandomPercent)) {
      // Each source may be dry; then the next one gives.
      for (int i = 0; i < 3; ++i) {
        std::optional<Schedule> next = FromSource(turn_++ % 3);
        if (next) return next;
      }
    }
    return Anything();
  }

  std::optional<Schedule> FromSource(int source) {
    if (source == 1 || elite_.empty()) return FromPool();
    return source == 0 ? FreshNeighbour(*elite_.begin()) : Child();
  }

  void Start() {
    started_ = true;
    pool_ = MakePool(space_, &ranking_, &random_);
    std::vector<Schedule> open;
    for (const Schedule& schedule : pool_.ranked) {
      if (IsFresh(schedule)) open.push_back(schedule);
    }
    start_ = PickApart(open, std::clamp(options_.max_trials / 5, 6, 40));
    if (IsFresh(space_.default_schedule()))
      start_.insert(start_.begin(), space_.default_schedule());
  }

  // The best by the corrected model of what was never tried; null if the pool is used up.
  std::optional<Schedule> FromPool() {
    if (learnt_) {
      std::erase_if(pool_.ranked, [&](const Schedule& schedule) { return !IsFresh(schedule); });
      ranking_.Sort(&pool_.ranked);
      learnt_ = false;
    }
    auto best = std::find_if(pool_.ranked.begin(), pool_.ranked.end(),
                             [&](const Schedule& schedule) { return IsFresh(schedule); });
    if (best == pool_.ranked.end()) return std::nullopt;
    return *best;
  }

  std::optional<Schedule> FreshNeighbour(const Measured& of) {
    return BestFresh(space_.Neighbours(of.schedule));
  }

  // A child of the elite: two parents crossed, or one parent moved by two or three steps.
  std::optional<Schedule> Child() {
    std::vector<Schedule> litter;
    for (int i = 0; i < kLitter; ++i) {
      Schedule child = Parent();
      if (random_.Chance(50)) {
        const Schedule other = Parent();
        for (auto& [knob, value] : child.knobs) {
          auto theirs = other.knobs.find(knob);
          if (theirs != other.knobs.end() && random_.Chance(50)) value = theirs->second;
        }
      }
      const uint64_t steps = 1 + random_.Below(3);
      for (uint64_t step = 0; step < steps && space_.Check(child).ok(); ++step) {
        std::vector<Schedule> around = space_.Neighbours(child);
        if (around.empty()) break;
        child = around[random_.Below(around.size())];
      }
      if (IsFresh(child) && space_.Check(child).ok()) litter.push_back(std::move(child));
    }
    return BestFresh(litter);
  }

  // The better, the more often: the smaller of two draws.
  const Schedule& Parent() {
    const uint64_t rank = std::min(random_.Below(elite_.size()), random_.Below(elite_.size()));
    return std::next(elite_.begin(), static_cast<int64_t>(rank))->schedule;
  }

  std::optional<Schedule> BestFresh(std::vector<Schedule> schedules) {
    schedules.erase(std::remove_if(schedules.begin(), schedules.end(),
                                   [&](const Schedule& s) { return !IsFresh(s); }),
                    schedules.end());
    if (schedules.empty()) return std::nullopt;
    ranking_.Sort(&schedules);
    return schedules.front();
  }

  std::optional<Schedule> Anything() {
    if (pool_.whole) {
      std::vector<Schedule> open;
      for (const Schedule& schedule : pool_.ranked) {
        if (IsFresh(schedule)) open.push_back(schedule);
      }
      if (open.empty()) return std::nullopt;
      return open[random_.Below(open.size())];
    }
    for (int draw = 0; draw < kFruitlessDraws; ++draw) {
      Schedule schedule = space_.Sample(random_.Next());
      if (IsFresh(schedule)) return schedule;
    }
    return FromPool();
  }

  bool IsFresh(const Schedule& schedule) const { return closed_.count(schedule) == 0; }
  bool Open(const Schedule& schedule) const {
    return IsFresh(schedule) && space_.Check(schedule).ok();
  }

  const Space& space_;
  const SearchOptions options_;
  SplitMix64 random_;
  Ranking ranking_;
  Pool pool_;
  ScheduleSet closed_;  // proposed, known or blocked
  std::set<Measured> elite_;
  std::vector<Schedule> start_;
  bool started_ = false;
  bool learnt_ = false;  // since the pool was sorted
  size_t seed_ = 0, start_at_ = 0;
  int proposed_ = 0, turn_ = 0;
  double mark_ns_ = kInfinity, mark_noise_ = 0;  // the last best that was a gain beyond noise
  int since_gain_ = 0;                           // outcomes observed after it
  std::string stop_reason_;
};

}  // namespace

std::unique_ptr<Search> MakeSearch(const Space& space, const SearchOptions& options,
                                   std::function<double(const Schedule&)> predict) {
  return std::make_unique<GuidedSearch>(space, options, std::move(predict));
}

}  // namespace kiln::compiler
