// SPDX-License-Identifier: Apache-2.0
// Kiln's kernels beside OpenBLAS: for each shape a search of some seconds in this process, then the
// winner and the library interleaved on one pool of threads. Prints GFLOP/s of both, their ratio
// with its spread, and the share of samples that were discarded. Results are kept in a state file,
// shape by shape, so that an interrupted run goes on where it was.
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "nlohmann/json.hpp"
#include "tests/bench/kernels/shapes.h"
#include "tests/bench/kernels/subject.h"
#include "worker/compiler/compiler.h"
#include "worker/compiler/search/search.h"
#include "worker/device/host_probe.h"

namespace kiln::bench {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

double Quantile(std::vector<double> values, double q) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  return values[static_cast<size_t>(q * static_cast<double>(values.size() - 1) + 0.5)];
}

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

struct Settings {
  int threads = 1;
  double seconds = 20;
  int rounds = 25;
  uint64_t seed = 1;
  bool busy = false;
  std::vector<std::string> given;  // try these alone: knobs to change in the default schedule
  std::string trials;              // a file to append every trial to; empty: none
};

struct Found {
  std::vector<std::unique_ptr<Subject>> finalists;  // best first, three at most
  int trials = 0;
  int best_rank = 0;  // of the final winner among the measured ones, by the model
};

// One shape's search: makes, checks and times candidates, and keeps the best three.
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

json Run(const Shape& shape, const DeviceFingerprint& device, const Settings& settings,
         kiln_pool* pool, const std::string& directory) {
  const Workload workload = MakeWorkload(shape.text);
  const Operands operands(workload);
  auto library =
      Subject::Make(workload, device, Schedule{"library", 1, {}}, directory, pool, operands);
  if (!library.ok())
    return {{"shape", shape.text}, {"error", std::string(library.status().message())}};
  const std::vector<float> want(operands.output(), operands.output() + operands.output_elements());
  Found found =
      Trials(shape.text, workload, device, settings, pool, operands, want, directory).Run();
  if (found.finalists.empty()) return {{"shape", shape.text}, {"error", "no candidate"}};

  json finalists = json::array();
  for (const auto& finalist : found.finalists) finalists.push_back(Print(finalist->schedule()));
  const size_t entrants = found.finalists.size() + 1;
  std::vector<std::vector<double>> times(entrants);
  int discarded = 0, taken = 0;
  for (int round = 0; taken < settings.rounds && round < 4 * settings.rounds; ++round) {
    std::vector<double> ns;
    bool undisturbed = true;
    for (size_t i = 0; i < entrants; ++i) {
      const size_t turn = (i + static_cast<size_t>(round)) % entrants;
      const Sample sample =
          (turn == 0 ? **library : *found.finalists[turn - 1]).Time(0.012, settings.busy);
      undisturbed &= sample.undisturbed;
      ns.resize(entrants);
      ns[turn] = sample.nanoseconds;
    }
    // A round counts whole, or not at all; if hardly any is quiet, the last ones are taken as they
    // are.
    if (!undisturbed && round < 3 * settings.rounds) {
      ++discarded;
      continue;
    }
    ++taken;
    for (size_t i = 0; i < entrants; ++i) times[i].push_back(ns[i]);
  }
  size_t winner = 1;
  for (size_t i = 2; i < entrants; ++i) {
    if (Quantile(times[i], 0.5) < Quantile(times[winner], 0.5)) winner = i;
  }
  std::vector<double> ratios;
  for (size_t i = 0; i < times[0].size(); ++i) ratios.push_back(times[0][i] / times[winner][i]);
  const double flops = Flops(workload);
  return {{"shape", shape.text},
          {"group", shape.group},
          {"threads", settings.threads},
          {"kiln_gflops", flops / Quantile(times[winner], 0.5)},
          {"openblas_gflops", flops / Quantile(times[0], 0.5)},
          {"ratio", Quantile(ratios, 0.5)},
          {"ratio_lo", Quantile(ratios, 0.25)},
          {"ratio_hi", Quantile(ratios, 0.75)},
          {"discarded", static_cast<double>(discarded) / (discarded + taken)},
          {"trials", found.trials},
          {"model_rank", found.best_rank},
          {"schedule", Print(found.finalists[winner - 1]->schedule())},
          {"finalists", finalists}};
}

void PrintLine(const json& r) {
  if (r.contains("error")) {
    std::printf("%-16s %s\n", r["shape"].get<std::string>().c_str(),
                r["error"].get<std::string>().c_str());
    return;
  }
  std::printf(
      "%-16s threads %d  kiln %7.1f  openblas %7.1f GFLOP/s  ratio %.3f [%.3f %.3f]  discarded "
      "%2.0f%%  trials %d rank %d  %s\n",
      r["shape"].get<std::string>().c_str(), r["threads"].get<int>(),
      r["kiln_gflops"].get<double>(), r["openblas_gflops"].get<double>(), r["ratio"].get<double>(),
      r["ratio_lo"].get<double>(), r["ratio_hi"].get<double>(), 100 * r["discarded"].get<double>(),
      r["trials"].get<int>(), r["model_rank"].get<int>(), r["schedule"].get<std::string>().c_str());
  std::fflush(stdout);
}

void PrintMeans(const json& results) {
  std::map<std::string, std::vector<double>> groups;
  for (const auto& [key, r] : results.items()) {
    if (!r.contains("ratio")) continue;
    const std::string group = r["group"];
    groups[absl::StrCat(group == "thin" ? "odd" : group, ", ", r["threads"].get<int>(), " threads")]
        .push_back(r["ratio"]);
    if (group == "thin")
      groups[absl::StrCat("thin, ", r["threads"].get<int>(), " threads")].push_back(r["ratio"]);
  }
  for (const auto& [name, ratios] : groups) {
    double sum = 0;
    for (double ratio : ratios) sum += std::log(ratio);
    std::printf("%-20s geometric mean %.3f  least %.3f  of %zu\n", name.c_str(),
                std::exp(sum / static_cast<double>(ratios.size())),
                *std::min_element(ratios.begin(), ratios.end()), ratios.size());
  }
}

}  // namespace
}  // namespace kiln::bench

int main(int argc, char** argv) {
  using namespace kiln;
  using namespace kiln::bench;
  CLI::App app{"Kiln's kernels beside OpenBLAS"};
  Settings settings;
  std::string state = "kernels.json", only;
  bool again = false;
  app.add_option("--threads", settings.threads, "threads of both; 0: all")->capture_default_str();
  app.add_option("--seconds", settings.seconds, "search per shape")->capture_default_str();
  app.add_option("--rounds", settings.rounds, "interleaved rounds per shape")
      ->capture_default_str();
  app.add_flag("--busy", settings.busy,
               "time by processor time: one thread, on a machine that is not quiet");
  app.add_option("--try", settings.given,
                 "instead of a search: the default schedule with these knobs, as \"kc=64 nc=512\"")
      ->allow_extra_args(false);
  app.add_option("--trials", settings.trials,
                 "append every trial to this file, a line of JSON each");
  app.add_option("--seed", settings.seed)->capture_default_str();
  app.add_option("--state", state, "results so far; shapes in it are not run again")
      ->capture_default_str();
  app.add_flag("--again", again, "of shapes in it, measure the finalists anew without a search");
  app.add_option("--only", only, "run this shape or group alone");
  CLI11_PARSE(app, argc, argv);

  auto device = worker::ProbeHost(settings.threads);
  if (!device.ok()) {
    std::fprintf(stderr, "%s\n", std::string(device.status().message()).c_str());
    return 1;
  }
  settings.threads = device->threads;
  kiln_pool* pool = nullptr;
  if (kiln_pool_create(settings.threads, 1, &pool) != KILN_OK) {
    std::fprintf(stderr, "%s\n", kiln_error());
    return 1;
  }
  const char* identity = kiln_library_identity("openblas");
  std::printf("peer: %s\n", identity == nullptr ? "none" : identity);
  std::string directory = (std::filesystem::temp_directory_path() / "kiln-bench-XXXXXX").string();
  if (mkdtemp(directory.data()) == nullptr) return 1;
  nlohmann::json results = nlohmann::json::object();
  if (std::ifstream in(state); in) results = nlohmann::json::parse(in, nullptr, false);
  if (!results.is_object()) results = nlohmann::json::object();
  for (const Shape& shape : Shapes()) {
    if (!only.empty() && shape.text != only && shape.group != only) continue;
    const std::string key = absl::StrCat(shape.text, " ", settings.threads);
    const bool known = results.contains(key) && !results[key].contains("error");
    if (!known || again) {
      Settings own = settings;
      if (known) own.given = results[key]["finalists"].get<std::vector<std::string>>();
      nlohmann::json result = Run(shape, *device, own, pool, directory);
      if (known) {
        for (const char* of_search : {"trials", "model_rank", "finalists"})
          result[of_search] = results[key][of_search];
      }
      results[key] = std::move(result);
      std::ofstream(state + ".new") << results.dump(1) << "\n";
      std::filesystem::rename(state + ".new", state);
    }
    PrintLine(results[key]);
  }
  PrintMeans(results);
  std::error_code ignored;
  std::filesystem::remove_all(directory, ignored);
  kiln_pool_destroy(pool);
  return 0;
}
