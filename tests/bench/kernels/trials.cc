// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/kernels/trials.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>

#include "absl/strings/str_split.h"
#include "nlohmann/json.hpp"
#include "worker/compiler/compiler.h"
#include "worker/compiler/search/search.h"

namespace kiln::bench {
namespace {

using nlohmann::json;

double Now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// The least of several short samples: what noise from other processes disturbs least.
double Quick(const Subject& subject, double give_up_ns, bool busy) {
  double best = 1e300;
  for (int i = 0; i < 6; ++i) {
    best = std::min(best, subject.Time(0.008, busy).nanoseconds);
    if (i >= 1 && best > give_up_ns) break;
  }
  return best;
}

bool Agrees(const Operands& operands, const std::vector<float>& want, double depth) {
  for (int64_t i = 0; i < operands.output_elements(); ++i) {
    if (!(std::fabs(operands.output()[i] - want[i]) <=
          1e-5 * std::sqrt(depth) + 1e-4 * std::fabs(want[i])))
      return false;
  }
  return true;
}

class Trials {
 public:
  Trials(const std::string& shape, const Workload& workload, const DeviceFingerprint& device,
         const Settings& settings, kiln_pool* pool, const Operands& operands,
         const std::vector<float>& want, const std::string& directory)
      : shape_(shape),
        workload_(workload),
        device_(device),
        settings_(settings),
        pool_(pool),
        operands_(operands),
        want_(want),
        directory_(directory) {}

  Found Run() {
    auto family = compiler::MatchFamily(workload_, device_, nullptr);
    if (!family.ok()) return {};
    auto space = (*family)->MakeSpace(workload_, device_);
    if (!space.ok()) return {};
    if (settings_.given.empty()) {
      Search(**space);
    } else {
      for (const std::string& knobs : settings_.given) {
        Schedule schedule = (*space)->default_schedule();
        for (const auto& knob : absl::StrSplit(knobs, ' ', absl::SkipEmpty())) {
          const std::vector<std::string> set = absl::StrSplit(knob, '=');
          if (set.size() == 2) schedule.knobs[set[0]] = std::atoll(set[1].c_str());
        }
        Try(schedule);
      }
    }
    auto best = std::min_element(measured_.begin(), measured_.end(),
                                 [](const auto& x, const auto& y) { return x.second < y.second; });
    for (const auto& [predicted, ns] : measured_)
      found_.best_rank += best != measured_.end() && predicted <= best->first;
    return std::move(found_);
  }

 private:
  double Predicted(const Schedule& schedule) const {
    auto ns = compiler::Predict(workload_, device_, schedule);
    return ns.ok() ? *ns : 1e300;
  }

  void Search(const compiler::Space& space) {
    compiler::SearchOptions options;
    options.seed = settings_.seed;
    options.max_trials = 100000;
    options.seeds = {space.default_schedule()};
    auto search =
        compiler::MakeSearch(space, options, [this](const Schedule& s) { return Predicted(s); });
    const double end = Now() + settings_.seconds;
    while (Now() < end) {
      const std::vector<Schedule> batch = search->Propose(4);
      if (batch.empty()) break;
      for (const Schedule& schedule : batch) {
        if (Now() >= end) break;
        search->Observe(Try(schedule));
      }
    }
  }

  Outcome Try(const Schedule& schedule) {
    ++found_.trials;
    Outcome outcome;
    outcome.schedule = schedule;
    outcome.predicted_ns = Predicted(schedule);
    auto subject = Subject::Make(workload_, device_, schedule, directory_, pool_, operands_);
    if (!subject.ok()) {
      std::fprintf(stderr, "%s: %s\n", Print(schedule).c_str(),
                   std::string(subject.status().message()).c_str());
      outcome.stage = Stage::kCompile;
    } else if (!Agrees(operands_, want_, static_cast<double>(workload_.spec.dims.at("K").lo))) {
      std::fprintf(stderr, "%s: wrong\n", Print(schedule).c_str());
      outcome.stage = Stage::kMismatch;
    } else {
      Measure(*std::move(subject), &outcome);
    }
    return outcome;
  }

  void Measure(std::unique_ptr<Subject> subject, Outcome* outcome) {
    std::vector<std::unique_ptr<Subject>>& finalists = found_.finalists;
    const double ns =
        Quick(*subject, finalists.empty() ? 1e300 : 1.3 * finalists[0]->best_ns, settings_.busy);
    subject->best_ns = ns;
    outcome->measurement.emplace().median_ns = ns;
    outcome->measurement->min_ns = ns;
    outcome->measurement->samples = 6;
    measured_.push_back({outcome->predicted_ns, ns});
    if (!settings_.trials.empty()) {
      std::ofstream(settings_.trials, std::ios::app)
          << json{{"shape", shape_},
                  {"threads", settings_.threads},
                  {"schedule", Print(outcome->schedule)},
                  {"predicted_ns", outcome->predicted_ns},
                  {"measured_ns", ns}}
                 .dump()
          << "\n";
    }
    finalists.push_back(std::move(subject));
    std::sort(finalists.begin(), finalists.end(),
              [](const auto& x, const auto& y) { return x->best_ns < y->best_ns; });
    if (finalists.size() > 3) finalists.pop_back();
  }

  const std::string& shape_;
  const Workload& workload_;
  const DeviceFingerprint& device_;
  const Settings& settings_;
  kiln_pool* pool_;
  const Operands& operands_;
  const std::vector<float>& want_;
  const std::string& directory_;
  Found found_;
  std::vector<std::pair<double, double>> measured_;  // predicted, measured
};

}  // namespace

Found RunTrials(const std::string& shape, const Workload& workload, const DeviceFingerprint& device,
                const Settings& settings, kiln_pool* pool, const Operands& operands,
                const std::vector<float>& want, const std::string& directory) {
  return Trials(shape, workload, device, settings, pool, operands, want, directory).Run();
}

}  // namespace kiln::bench
