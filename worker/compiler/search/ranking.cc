// SPDX-License-Identifier: Apache-2.0
#include "worker/compiler/search/ranking.h"

#include <algorithm>
#include <iterator>

namespace kiln::compiler {
namespace {

// Stands for a time that the model cannot tell: behind all that it can.
constexpr double kUnpredictedNs = 1e18;
// One odd measurement must not condemn a knob's value.
constexpr double kLargestRatio = 16;
// What a failure counts as: as bad as the slowest that is still believed in.
constexpr double kFailureRatio = 8;
// Pseudo-observations of "the model is right" per factor: with fewer than two samples, mostly the
// model's word counts.
constexpr double kShrinkage = 2;
// Factors of knobs that vary together settle within three rounds; more rounds changed no rank in
// trials.
constexpr int kRounds = 3;

// Weight of the samples of the next smaller and larger values of a knob: most knobs are sizes, and
// times change smoothly with them.
constexpr double kBorrowed = 0.25;

struct Sum {
  double total = 0, weight = 0;
  void Add(double value, double times) {
    total += value * times;
    weight += times;
  }
  void Add(const Sum& other, double share) {
    total += other.total * share;
    weight += other.weight * share;
  }
  double Mean() const { return total / weight; }
};

bool Usable(double ns) { return ns > 0 && ns < kUnpredictedNs; }

}  // namespace

double Ranking::Predicted(const Schedule& schedule) {
  auto found = predicted_.find(schedule);
  if (found != predicted_.end()) return found->second;
  double ns = predict_(schedule);
  if (!Usable(ns)) ns = kUnpredictedNs;
  predicted_.emplace(schedule, ns);
  return ns;
}

double Ranking::Corrected(const Schedule& schedule) {
  if (!fitted_) Fit();
  double ns = Predicted(schedule);
  for (const auto& [knob, values] : factors_) {
    auto set = schedule.knobs.find(knob);
    if (set == schedule.knobs.end()) continue;
    auto factor = values.find(set->second);
    if (factor != values.end()) ns *= factor->second;
  }
  return ns;
}

void Ranking::Learn(const Schedule& schedule, double measured_ns) {
  if (!Usable(measured_ns)) return;
  // Ratios to a real prediction and to the stand-in have nothing in common: once there are real
  // ones, only they count.
  const bool predicted = Usable(Predicted(schedule));
  if (predicted && !any_predicted_) samples_.clear();
  any_predicted_ = any_predicted_ || predicted;
  if (predicted != any_predicted_) return;
  samples_.push_back({schedule, measured_ns / Predicted(schedule)});
  fitted_ = false;
}

void Ranking::LearnFailure(const Schedule& schedule) {
  failures_.push_back(schedule);
  fitted_ = false;
}

// Backfitting of a multiplicative model: each knob's factors explain what the other knobs' leave
// over.
void Ranking::Fit() {
  fitted_ = true;
  factors_.clear();
  Sum measured;
  for (const Sample& sample : samples_) measured.Add(sample.ratio, 1);
  const double level = samples_.empty() ? 1 : measured.Mean();
  std::vector<Sample> samples = samples_;
  for (const Schedule& failure : failures_) samples.push_back({failure, level * kFailureRatio});

  std::vector<double> explained(samples.size(), level);
  for (const Sample& sample : samples) {
    for (const auto& [knob, value] : sample.schedule.knobs) factors_[knob][value] = 1;
  }
  for (int round = 0; round < kRounds; ++round) {
    for (auto& [knob, factors] : factors_) {
      std::map<int64_t, Sum> sums;
      for (size_t i = 0; i < samples.size(); ++i) {
        auto set = samples[i].schedule.knobs.find(knob);
        if (set == samples[i].schedule.knobs.end()) continue;
        const double rest = samples[i].ratio / (explained[i] / factors[set->second]);
        sums[set->second].Add(std::clamp(rest, 1 / kLargestRatio, kLargestRatio), 1);
      }
      const std::map<int64_t, double> before = factors;
      for (auto it = sums.begin(); it != sums.end(); ++it) {
        Sum sum = it->second;
        sum.Add(1, kShrinkage);
        if (it != sums.begin()) sum.Add(std::prev(it)->second, kBorrowed);
        if (std::next(it) != sums.end()) sum.Add(std::next(it)->second, kBorrowed);
        factors[it->first] = sum.Mean();
      }
      for (size_t i = 0; i < samples.size(); ++i) {
        auto set = samples[i].schedule.knobs.find(knob);
        if (set == samples[i].schedule.knobs.end()) continue;
        explained[i] *= factors[set->second] / before.at(set->second);
      }
    }
  }
}

void Ranking::Sort(std::vector<Schedule>* schedules) {
  std::vector<std::pair<double, const Schedule*>> keys;
  keys.reserve(schedules->size());
  for (const Schedule& schedule : *schedules) keys.emplace_back(Corrected(schedule), &schedule);
  std::sort(keys.begin(), keys.end(), [](const auto& a, const auto& b) {
    if (a.first != b.first) return a.first < b.first;
    return ScheduleLess()(*a.second, *b.second);
  });
  std::vector<Schedule> sorted;
  sorted.reserve(schedules->size());
  for (const auto& [ns, schedule] : keys) sorted.push_back(*schedule);
  *schedules = std::move(sorted);
}

}  // namespace kiln::compiler
