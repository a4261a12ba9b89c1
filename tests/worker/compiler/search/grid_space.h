// SPDX-License-Identifier: Apache-2.0
// An invented space: knobs with given values and a rule that says which settings are legal; and the
// invented times of it. Only in tests.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "proto/contract/outcome.h"
#include "worker/compiler/families/family.h"
#include "worker/compiler/search/random.h"
#include "worker/compiler/search/schedule_order.h"

namespace kiln::compiler {

class GridSpace : public Space {
 public:
  using Rule = std::function<bool(const Schedule&)>;

  GridSpace(std::vector<Knob> knobs, Rule legal)
      : knobs_(std::move(knobs)), legal_(std::move(legal)) {
    default_.family = "invented";
    for (const Knob& knob : knobs_) default_.knobs[knob.name] = knob.values.front();
  }

  const std::vector<Knob>& knobs() const override { return knobs_; }
  const Schedule& default_schedule() const override { return default_; }

  absl::Status Check(const Schedule& schedule) const override {
    if (schedule.family != "invented") return absl::InvalidArgumentError("not invented");
    return legal_(schedule) ? absl::OkStatus() : absl::FailedPreconditionError("against the rule");
  }

  SpaceSize Count(int64_t limit) const override {
    int64_t count = 0;
    Schedule schedule = default_;
    CountFrom(0, &schedule, limit, &count);
    return {count, count < limit};
  }

  Schedule Sample(uint64_t random) const override {
    SplitMix64 chance(random);
    for (int draw = 0; draw < 1000; ++draw) {
      Schedule schedule = default_;
      for (const Knob& knob : knobs_) {
        schedule.knobs[knob.name] = knob.values[chance.Below(knob.values.size())];
      }
      if (legal_(schedule)) return schedule;
    }
    return default_;
  }

  std::vector<Schedule> Neighbours(const Schedule& schedule) const override {
    std::vector<Schedule> around;
    for (const Knob& knob : knobs_) {
      for (size_t i = 0; i < knob.values.size(); ++i) {
        if (knob.values[i] != schedule.knobs.at(knob.name)) continue;
        for (int step : {-1, 1}) {
          const int64_t at = static_cast<int64_t>(i) + step;
          if (at < 0 || at >= static_cast<int64_t>(knob.values.size())) continue;
          Schedule neighbour = schedule;
          neighbour.knobs[knob.name] = knob.values[at];
          if (legal_(neighbour)) around.push_back(neighbour);
        }
      }
    }
    return around;
  }

 private:
  void CountFrom(size_t knob, Schedule* schedule, int64_t limit, int64_t* count) const {
    if (*count >= limit) return;
    if (knob == knobs_.size()) {
      if (legal_(*schedule)) ++*count;
      return;
    }
    for (int64_t value : knobs_[knob].values) {
      schedule->knobs[knobs_[knob].name] = value;
      CountFrom(knob + 1, schedule, limit, count);
    }
  }

  std::vector<Knob> knobs_;
  Rule legal_;
  Schedule default_;
};

inline bool Anything(const Schedule&) { return true; }

inline Knob MakeKnob(const std::string& name, int values) {
  Knob knob{.name = name, .values = {}, .meaning = "invented"};
  for (int i = 0; i < values; ++i) knob.values.push_back(i);
  return knob;
}

inline Outcome MeasuredAs(const Schedule& schedule, double ns) {
  Outcome outcome;
  outcome.schedule = schedule;
  outcome.measurement =
      Measurement{.samples = 10, .median_ns = ns, .ci95_lo_ns = ns, .ci95_hi_ns = ns};
  return outcome;
}

inline Outcome FailedAt(const Schedule& schedule, Stage stage) {
  Outcome outcome;
  outcome.schedule = schedule;
  outcome.stage = stage;
  outcome.reason = "invented";
  return outcome;
}

}  // namespace kiln::compiler
