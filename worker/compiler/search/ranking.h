// SPDX-License-Identifier: Apache-2.0
// Ranks schedules by the cost model, corrected by what this job has measured: one factor for each
// value of each knob, fitted to measured / predicted. A model that is wrong in the same way for all
// schedules with nr=16 is put right after a few of them. Owned by a search; not thread-safe. Uses +
// * / alone, so that ranks do not depend on a libm.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "worker/compiler/search/schedule_order.h"

namespace kiln::compiler {

class Ranking {
 public:
  explicit Ranking(std::function<double(const Schedule&)> predict) : predict_(std::move(predict)) {}

  // Nanoseconds by the model alone, asked once per schedule; infinity where it has no (finite,
  // positive) answer.
  double Predicted(const Schedule& schedule);
  // The same, corrected. Only good for comparing.
  double Corrected(const Schedule& schedule);

  void Learn(const Schedule& schedule, double measured_ns);
  // It failed: its knobs' values become less attractive, in proportion to how many others failed
  // with them.
  void LearnFailure(const Schedule& schedule);

  // Sorts by Corrected, ties by schedule.
  void Sort(std::vector<Schedule>* schedules);

 private:
  struct Sample {
    Schedule schedule;
    double ratio;  // measured / predicted
  };
  void Fit();

  std::function<double(const Schedule&)> predict_;
  ScheduleMap<double> predicted_;
  std::vector<Sample> samples_;
  std::vector<Schedule> failures_;
  std::map<std::string, std::map<int64_t, double>> factors_;  // knob -> value -> factor
  bool any_predicted_ = false;
  bool fitted_ = true;
};

}  // namespace kiln::compiler
