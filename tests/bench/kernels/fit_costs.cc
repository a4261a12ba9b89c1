// SPDX-License-Identifier: Apache-2.0
// Fits the costs of worker/compiler/model to trials that `bench_kernels --trials FILE` wrote:
// random steps in the logarithms of the constants, kept where the error shrinks. The error of a
// trial is that of its rank among its shape's: the logarithm of measured over predicted, less the
// shape's mean; fast candidates count more. Prints the error before and after, per shape, and the
// constants.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <map>
#include <random>

#include "CLI/CLI.hpp"
#include "nlohmann/json.hpp"
#include "tests/bench/kernels/shapes.h"
#include "worker/compiler/compiler.h"
#include "worker/compiler/families/family.h"
#include "worker/compiler/model/analytic.h"
#include "worker/device/host_probe.h"

namespace kiln::bench {
namespace {

using compiler::model::Costs;

struct Trial {
  std::string schedule;
  compiler::tile::Program program;
  double measured_ns = 0;
};

struct Group {  // of one shape
  DeviceFingerprint device;
  std::vector<Trial> trials;
  double best_ns = 1e300;
};

struct Constant {
  const char* name;
  double Costs::*member;
};
const Constant kFitted[] = {
    {"issued_per_cycle", &Costs::issued_per_cycle},
    {"tile_call", &Costs::tile_call},
    {"tile_transfer", &Costs::tile_transfer},
    {"dot_total", &Costs::dot_total},
    {"block_start", &Costs::block_start},
    {"step_start", &Costs::step_start},
    {"copy_element", &Costs::copy_element},
    {"copy_vector", &Costs::copy_vector},
    {"from_l2", &Costs::from_l2},
    {"from_l3", &Costs::from_l3},
    {"from_memory", &Costs::from_memory},
    {"write_back", &Costs::write_back},
    {"jump_bytes", &Costs::jump_bytes},
    {"longest_jump", &Costs::longest_jump},
    {"l3_jump_bytes", &Costs::l3_jump_bytes},
    {"l3_longest_jump", &Costs::l3_longest_jump},
    {"overlap", &Costs::overlap},
    {"memory_overlap", &Costs::memory_overlap},
    {"memory_sharing", &Costs::memory_sharing},
};

struct Error {
  double total = 0;  // root of the weighted mean square
  std::map<std::string, double> of_shape;
  std::map<std::string, double> best_rank;  // share of the trials predicted to be at least as fast
};

// How much a shape's own level counts beside the ranks.
constexpr double kLevel = 0.05;

Error ErrorOf(const std::map<std::string, Group>& groups, const Costs& costs) {
  Error error;
  for (const auto& [shape, group] : groups) {
    std::vector<double> predicted, logs, weights;
    double weight = 0, mean = 0;
    for (const Trial& trial : group.trials) {
      predicted.push_back(compiler::model::PredictNanoseconds(trial.program, group.device, costs));
      logs.push_back(std::log(trial.measured_ns / predicted.back()));
      weights.push_back(std::pow(group.best_ns / trial.measured_ns, 2));
      weight += weights.back();
      mean += weights.back() * logs.back();
    }
    mean /= weight;
    double square = 0;
    for (size_t i = 0; i < logs.size(); ++i)
      square += weights[i] * (logs[i] - mean) * (logs[i] - mean) / weight;
    error.of_shape[shape] = std::sqrt(square);
    error.total += square + kLevel * mean * mean;
    size_t best = 0, rank = 0;
    for (size_t i = 1; i < logs.size(); ++i) {
      if (group.trials[i].measured_ns < group.trials[best].measured_ns) best = i;
    }
    for (double ns : predicted) rank += ns <= predicted[best];
    error.best_rank[shape] = static_cast<double>(rank) / static_cast<double>(logs.size());
  }
  error.total = std::sqrt(error.total / static_cast<double>(groups.size()));
  return error;
}

std::map<std::string, Group> Read(const std::vector<std::string>& files) {
  std::map<std::string, Group> groups;
  for (const std::string& file : files) {
    std::ifstream in(file);
    for (std::string line; std::getline(in, line);) {
      const nlohmann::json json = nlohmann::json::parse(line);
      const std::string shape = json["shape"];
      const int threads = json["threads"];
      Group& group = groups[shape + " " + std::to_string(threads)];
      if (group.trials.empty()) group.device = *worker::ProbeHost(threads);
      auto schedule = ParseSchedule(json["schedule"].get<std::string>());
      if (!schedule.ok()) continue;
      const Workload workload = MakeWorkload(shape);
      auto family = compiler::MatchFamily(workload, group.device, nullptr);
      auto program = (*family)->Build(workload, group.device, *schedule);
      if (!program.ok()) continue;
      group.trials.push_back({Print(*schedule), *std::move(program), json["measured_ns"]});
      group.best_ns = std::min(group.best_ns, group.trials.back().measured_ns);
    }
  }
  return groups;
}

void Print(const char* title, const Error& error) {
  std::printf("%s: error %.4f\n", title, error.total);
  for (const auto& [shape, own] : error.of_shape)
    std::printf("  %-20s %.3f  the fastest is within the first %3.0f %%\n", shape.c_str(), own,
                100 * error.best_rank.at(shape));
}

void Show(Group group, const Costs& costs) {
  std::sort(group.trials.begin(), group.trials.end(),
            [](const Trial& x, const Trial& y) { return x.measured_ns < y.measured_ns; });
  for (const Trial& trial : group.trials) {
    const double ns = compiler::model::PredictNanoseconds(trial.program, group.device, costs);
    std::printf("%12.1f us, predicted %12.1f  %s\n", trial.measured_ns / 1e3, ns / 1e3,
                trial.schedule.c_str());
  }
}

Costs Fit(const std::map<std::string, Group>& groups, int steps, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal;
  Costs best;
  double least = ErrorOf(groups, best).total;
  for (int step = 0; step < steps; ++step) {
    Costs next = best;
    const double width = step % 3 == 0 ? 0.5 : 0.15;
    for (const Constant& constant : kFitted) {
      if (random() % 4 == 0) next.*constant.member *= std::exp(width * normal(random));
    }
    const double error = ErrorOf(groups, next).total;
    // Constants that one machine's trials say nothing about stay where they were.
    if (error < least * 0.9998) least = error, best = next;
  }
  return best;
}

}  // namespace
}  // namespace kiln::bench

int main(int argc, char** argv) {
  using namespace kiln::bench;
  CLI::App app{"Fits the cost model's constants to trials"};
  std::vector<std::string> files;
  int steps = 300;
  uint64_t seed = 1;
  std::string shown;
  app.add_option("files", files, "of bench_kernels --trials")->required();
  app.add_option("--steps", steps)->capture_default_str();
  app.add_option("--show", shown, "print the trials of this shape, as \"128x128x128 1\"");
  app.add_option("--seed", seed)->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  const auto groups = Read(files);
  Print("before", ErrorOf(groups, {}));
  if (!shown.empty() && groups.count(shown) != 0) Show(groups.at(shown), {});
  if (steps == 0) return 0;
  const auto costs = Fit(groups, steps, seed);
  Print("after", ErrorOf(groups, costs));
  for (const Constant& constant : kFitted)
    std::printf("%-18s %.4g\n", constant.name, costs.*constant.member);
  return 0;
}
