// SPDX-License-Identifier: Apache-2.0
// bench_lookup KILN ECHO SERVER RECORDS ROUNDS CALLS: GetSchedule beside an echo of the same
// response size, in alternate slices of CALLS calls. Three kinds of keys: each once in random order
// right after the server's start (cold), uniform, and Zipf. SERVER is the process that serves both:
// its CPU time a call is told too, which other load on the machine hardly changes. Prints one JSON
// object.
#include <dirent.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <string>
#include <vector>

#include "kiln/v1/kiln.pb.h"
#include "nlohmann/json.hpp"
#include "proto/contract/device.h"
#include "proto/wire.h"
#include "tests/bench/lookup/load.h"
#include "tests/bench/lookup/records.h"
#include "worker/compiler/search/random.h"

namespace kiln::bench {
namespace {

constexpr int kThreads = 2, kChannelsPerThread = 2, kInFlight = 64;

std::string NthRequest(int64_t n) {
  v1::GetScheduleRequest request;
  wire::ToWire(NthSpec(n), request.mutable_selection()->mutable_workload());
  request.mutable_selection()->set_device(DeviceId(BenchDevice()));
  return request.SerializeAsString();
}

// Ranks 0 .. n-1 with probability proportional to 1 / (rank + 1).
class Zipf {
 public:
  explicit Zipf(int64_t n) : cumulative_(n) {
    double sum = 0;
    for (int64_t i = 0; i < n; ++i) cumulative_[i] = sum += 1.0 / static_cast<double>(i + 1);
  }
  int64_t Draw(compiler::SplitMix64* random) const {
    const double at =
        static_cast<double>(random->Next() >> 11) / 9007199254740992.0 * cumulative_.back();
    return std::lower_bound(cumulative_.begin(), cumulative_.end(), at) - cumulative_.begin();
  }

 private:
  std::vector<double> cumulative_;
};

// What the process's threads that live have used.
int64_t CpuNs(const std::string& process) {
  const std::string folder = "/proc/" + process + "/task/";
  int64_t sum = 0;
  DIR* threads = opendir(folder.c_str());
  if (threads == nullptr) return 0;
  while (const dirent* thread = readdir(threads)) {
    if (thread->d_name[0] == '.') continue;
    long long ns = 0;
    FILE* file = std::fopen((folder + thread->d_name + "/schedstat").c_str(), "r");
    if (file == nullptr) continue;
    if (std::fscanf(file, "%lld", &ns) == 1) sum += ns;
    std::fclose(file);
  }
  closedir(threads);
  return sum;
}

// Slices of one side under one kind of keys.
struct Side {
  std::vector<double> rate;    // calls per second, by round
  std::vector<double> cpu_us;  // of the server a call, by round
  std::vector<int64_t> latency_ns;
  int64_t errors = 0;
  std::string first_error;

  void Add(Load load, int64_t server_ns) {
    cpu_us.push_back(static_cast<double>(server_ns) / 1e3 / static_cast<double>(load.calls));
    rate.push_back(static_cast<double>(load.calls) / load.seconds);
    latency_ns.insert(latency_ns.end(), load.latency_ns.begin(), load.latency_ns.end());
    errors += load.errors;
    if (first_error.empty()) first_error = load.first_error;
  }
  double Percentile(double share) {
    const size_t at = std::min(latency_ns.size() - 1,
                               static_cast<size_t>(share * static_cast<double>(latency_ns.size())));
    std::nth_element(latency_ns.begin(), latency_ns.begin() + static_cast<int64_t>(at),
                     latency_ns.end());
    return static_cast<double>(latency_ns[at]);
  }
};

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

nlohmann::json Report(Side kiln, Side echo) {
  std::vector<double> ratios;
  for (size_t i = 0; i < kiln.rate.size(); ++i) ratios.push_back(kiln.rate[i] / echo.rate[i]);
  const auto [least, most] = std::minmax_element(ratios.begin(), ratios.end());
  auto side = [](Side* s) {
    return nlohmann::json{{"per_second", Median(s->rate)},
                          {"cpu_us", Median(s->cpu_us)},
                          {"p50_us", s->Percentile(0.5) / 1e3},
                          {"p99_us", s->Percentile(0.99) / 1e3},
                          {"errors", s->errors},
                          {"first_error", s->first_error}};
  };
  nlohmann::json report = {{"kiln", side(&kiln)},
                           {"echo", side(&echo)},
                           {"ratio", Median(ratios)},
                           {"ratio_least", *least},
                           {"ratio_most", *most}};
  report["p99_ratio"] =
      report["kiln"]["p99_us"].get<double>() / report["echo"]["p99_us"].get<double>();
  return report;
}

int Run(const std::string& kiln_address, const std::string& echo_address, const std::string& server,
        int64_t records, int rounds, int64_t calls) {
  std::vector<std::string> requests;
  requests.reserve(records);
  for (int64_t n = 0; n < records; ++n) requests.push_back(NthRequest(n));

  LoadClient kiln(kiln_address, kThreads, kChannelsPerThread),
      echo(echo_address, kThreads, kChannelsPerThread);
  // The one lookup that is not cold.
  const uint32_t size = static_cast<uint32_t>(kiln.Call(requests[0]).size());
  std::string size_bytes(sizeof(size), '\0');
  std::memcpy(size_bytes.data(), &size, sizeof(size));
  // Where memory alone is of interest, both are one server, which knows nothing of sizes.
  if (echo_address != kiln_address) echo.Call(size_bytes);
  echo.Run(calls, kInFlight, [&](int64_t) -> const std::string& { return requests[0]; });

  compiler::SplitMix64 random(1);
  auto measure = [&](const std::vector<int64_t>& keys, int64_t slice) {
    Side kiln_side, echo_side;
    for (int64_t at = 0; at < static_cast<int64_t>(keys.size()); at += slice) {
      const int64_t count = std::min<int64_t>(slice, static_cast<int64_t>(keys.size()) - at);
      auto request = [&](int64_t n) -> const std::string& { return requests[keys[at + n]]; };
      const int64_t before = CpuNs(server);
      Load load = kiln.Run(count, kInFlight, request);
      const int64_t between = CpuNs(server);
      kiln_side.Add(std::move(load), between - before);
      load = echo.Run(count, kInFlight, request);
      echo_side.Add(std::move(load), CpuNs(server) - between);
    }
    return Report(std::move(kiln_side), std::move(echo_side));
  };

  nlohmann::json told = {
      {"records", records}, {"response_bytes", size}, {"in_flight", kInFlight}, {"rounds", rounds}};
  std::vector<int64_t> order(records);
  std::iota(order.begin(), order.end(), 0);
  for (int64_t i = records - 1; i > 0; --i) std::swap(order[i], order[random.Below(i + 1)]);
  told["cold"] = measure(order, std::max<int64_t>(1, (records + rounds - 1) / rounds));

  std::vector<int64_t> uniform(calls * rounds), zipf(calls * rounds);
  for (int64_t& key : uniform) key = static_cast<int64_t>(random.Below(records));
  const Zipf ranks(records);
  for (int64_t& key : zipf) key = order[ranks.Draw(&random)];
  told["uniform"] = measure(uniform, calls);
  told["zipf"] = measure(zipf, calls);
  std::printf("%s\n", told.dump().c_str());
  return 0;
}

}  // namespace
}  // namespace kiln::bench

int main(int argc, char** argv) {
  if (argc != 7) {
    std::fprintf(stderr, "usage: bench_lookup KILN ECHO SERVER RECORDS ROUNDS CALLS\n");
    return 2;
  }
  return kiln::bench::Run(argv[1], argv[2], argv[3], std::atoll(argv[4]), std::atoi(argv[5]),
                          std::atoll(argv[6]));
}
