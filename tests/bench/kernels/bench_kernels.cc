// SPDX-License-Identifier: Apache-2.0
// Kiln's kernels beside OpenBLAS: for each shape a search of some seconds in this process, then the
// winner and the library interleaved on one pool of threads. Prints GFLOP/s of both, their ratio
// with its spread, and the share of samples that were discarded. Results are kept in a state file,
// shape by shape, so that an interrupted run goes on where it was.
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"
#include "tests/bench/kernels/shapes.h"
#include "tests/bench/kernels/trials.h"
#include "worker/device/host_probe.h"

namespace kiln::bench {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

double Quantile(std::vector<double> values, double q) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  return values[static_cast<size_t>(std::lround(q * static_cast<double>(values.size() - 1)))];
}

json Run(const Shape& shape, const DeviceFingerprint& device, const Settings& settings,
         kiln_pool* pool, const std::string& directory) {
  const Workload workload = MakeWorkload(shape.text);
  const Operands operands(workload);
  auto library =
      Subject::Make(workload, device, Schedule{"library", 1, {}}, directory, pool, operands);
  if (!library.ok())
    return {{"shape", shape.text}, {"error", std::string(library.status().message())}};
  const std::vector<float> want(operands.output(), operands.output() + operands.output_elements());
  Found found = RunTrials(shape.text, workload, device, settings, pool, operands, want, directory);
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
