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
#include "nlohmann/json.hpp"
#include "tests/bench/kernels/subject.h"
#include "worker/compiler/compiler.h"
#include "worker/compiler/search/search.h"
#include "worker/device/host_probe.h"

namespace kiln::bench {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

struct Shape {
  std::string group;  // "square", "odd", "thin" (at most 8 rows), "constant"
  std::string text;   // "1024x1024x1024": M, N, K; "32*..." batched; "...T" both sides transposed;
                      // "...C" constant B
};

std::vector<Shape> Shapes() {
  std::vector<Shape> shapes;
  for (int64_t n : {128, 256, 512, 1024, 2048, 1000, 2047})
    shapes.push_back({"square", absl::StrCat(n, "x", n, "x", n)});
  for (const char* text : {"1x4096x4096", "8x4096x4096"}) shapes.push_back({"thin", text});
  for (const char* text :
       {"64x4096x4096", "4096x64x4096", "4096x4096x64", "127x8191x253", "384x384x6144",
        "3136x64x576", "196x512x4608", "32*128x128x64", "768x768x768T"}) {
    shapes.push_back({"odd", text});
  }
  for (const char* text : {"64x4096x4096C", "1024x1024x1024C"})
    shapes.push_back({"constant", text});
  return shapes;
}

Workload MakeWorkload(const std::string& text) {
  long long batch = 0, m = 0, n = 0, k = 0;
  char kind = ' ';
  if (std::sscanf(text.c_str(), "%lld*%lldx%lldx%lld", &batch, &m, &n, &k) != 4) {
    batch = 0;
    if (std::sscanf(text.c_str(), "%lldx%lldx%lld%c", &m, &n, &k, &kind) < 3) std::abort();
  }
  WorkloadSpec spec;
  if (batch > 0) {
    spec.program =
        "operator P(B,M,N,K) { input A[B,M,K], X[B,K,N]; output C[B,M,N]; C[b,i,j] = "
        "sum(A[b,i,k]*X[b,k,j]); }";
    spec.dims["B"] = {batch, batch};
  } else if (kind == 'T') {
    spec.program =
        "operator P(M,N,K) { input A[K,M], B[N,K]; output C[M,N]; C[i,j] = sum(A[k,i]*B[j,k]); }";
  } else {
    spec.program =
        absl::StrCat("operator P(M,N,K) { input A[M,K]; ", kind == 'C' ? "constant" : "input",
                     " B[K,N]; output C[M,N]; C[i,j] = sum(A[i,k]*B[k,j]); }");
  }
  spec.dims["M"] = {m, m};
  spec.dims["N"] = {n, n};
  spec.dims["K"] = {k, k};
  auto workload = CheckWorkload(spec);
  if (!workload.ok()) {
    std::fprintf(stderr, "%s\n", std::string(workload.status().message()).c_str());
    std::exit(1);
  }
  return *workload;
}

double Flops(const Workload& workload) {
  double flops = 2;
  for (const auto& [name, binding] : workload.spec.dims) flops *= static_cast<double>(binding.lo);
  return flops;
}

double Quantile(std::vector<double> values, double q) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  return values[static_cast<size_t>(q * static_cast<double>(values.size() - 1) + 0.5)];
}

double Now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// The least of several short samples: what noise from other processes disturbs least.
double Quick(const Subject& subject, double give_up_ns) {
  double best = 1e300;
  for (int i = 0; i < 6; ++i) {
    best = std::min(best, subject.Time(0.008).nanoseconds);
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
};

struct Found {
  std::vector<std::unique_ptr<Subject>> finalists;  // best first, three at most
  int trials = 0;
  int best_rank = 0;  // of the final winner among the measured ones, by the model
};

Found SearchFor(const Workload& workload, const DeviceFingerprint& device, const Settings& settings,
                kiln_pool* pool, const Operands& operands, const std::vector<float>& want,
                const std::string& directory) {
  Found found;
  auto family = compiler::MatchFamily(workload, device, nullptr);
  if (!family.ok()) return found;
  auto space = (*family)->MakeSpace(workload, device);
  if (!space.ok()) return found;
  auto predict = [&](const Schedule& schedule) {
    auto ns = compiler::Predict(workload, device, schedule);
    return ns.ok() ? *ns : 1e300;
  };
  compiler::SearchOptions options;
  options.seed = settings.seed;
  options.max_trials = 100000;
  options.seeds = {(*space)->default_schedule()};
  auto search = compiler::MakeSearch(**space, options, predict);
  std::vector<std::pair<double, double>> measured;  // predicted, measured
  const double end = Now() + settings.seconds;
  while (Now() < end) {
    const std::vector<Schedule> batch = search->Propose(4);
    if (batch.empty()) break;
    for (const Schedule& schedule : batch) {
      if (Now() >= end) break;
      Outcome outcome;
      outcome.schedule = schedule;
      outcome.predicted_ns = predict(schedule);
      auto subject = Subject::Make(workload, device, schedule, directory, pool, operands);
      if (!subject.ok()) {
        std::fprintf(stderr, "%s: %s\n", Print(schedule).c_str(),
                     std::string(subject.status().message()).c_str());
        outcome.stage = Stage::kCompile;
      } else if (!Agrees(operands, want, static_cast<double>(workload.spec.dims.at("K").lo))) {
        std::fprintf(stderr, "%s: wrong\n", Print(schedule).c_str());
        outcome.stage = Stage::kMismatch;
      } else {
        (*subject)->best_ns =
            Quick(**subject, found.finalists.empty() ? 1e300 : 1.3 * found.finalists[0]->best_ns);
        outcome.measurement.emplace().median_ns = (*subject)->best_ns;
        outcome.measurement->min_ns = (*subject)->best_ns;
        outcome.measurement->samples = 6;
        measured.push_back({outcome.predicted_ns, (*subject)->best_ns});
        found.finalists.push_back(*std::move(subject));
        std::sort(found.finalists.begin(), found.finalists.end(),
                  [](const auto& x, const auto& y) { return x->best_ns < y->best_ns; });
        if (found.finalists.size() > 3) found.finalists.pop_back();
      }
      ++found.trials;
      search->Observe(outcome);
    }
  }
  auto best = std::min_element(measured.begin(), measured.end(),
                               [](const auto& x, const auto& y) { return x.second < y.second; });
  for (const auto& [predicted, ns] : measured)
    found.best_rank += best != measured.end() && predicted <= best->first;
  return found;
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
  Found found = SearchFor(workload, device, settings, pool, operands, want, directory);
  if (found.finalists.empty()) return {{"shape", shape.text}, {"error", "no candidate"}};

  const size_t entrants = found.finalists.size() + 1;
  std::vector<std::vector<double>> times(entrants);
  int discarded = 0, taken = 0;
  for (int round = 0; taken < settings.rounds && round < 4 * settings.rounds; ++round) {
    std::vector<double> ns;
    bool undisturbed = true;
    for (size_t i = 0; i < entrants; ++i) {
      const size_t turn = (i + static_cast<size_t>(round)) % entrants;
      const Sample sample = (turn == 0 ? **library : *found.finalists[turn - 1]).Time(0.012);
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
          {"schedule", Print(found.finalists[winner - 1]->schedule())}};
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
  app.add_option("--threads", settings.threads, "threads of both; 0: all")->capture_default_str();
  app.add_option("--seconds", settings.seconds, "search per shape")->capture_default_str();
  app.add_option("--rounds", settings.rounds, "interleaved rounds per shape")
      ->capture_default_str();
  app.add_option("--seed", settings.seed)->capture_default_str();
  app.add_option("--state", state, "results so far; shapes in it are not run again")
      ->capture_default_str();
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
    if (!results.contains(key) || results[key].contains("error")) {
      results[key] = Run(shape, *device, settings, pool, directory);
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
