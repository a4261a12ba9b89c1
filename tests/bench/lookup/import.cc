// SPDX-License-Identifier: Apache-2.0
// bench_import DATABASE COUNT: imports the records 0 .. COUNT-1, durably, in transactions of 1,000
// by two threads, so that one makes its rows while the other's are written, and prints one JSON
// object with the rate. Making the records is not timed.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

#include "db/sqlite_store.h"
#include "tests/bench/lookup/records.h"

namespace kiln::bench {
namespace {

constexpr int64_t kTransaction = 1000;
constexpr int64_t kAtATime = 20 * kTransaction;  // records that are made, then imported
constexpr int kThreads = 4;

std::vector<std::vector<Record>> Make(int64_t first, int64_t end) {
  std::vector<std::vector<Record>> batches;
  for (int64_t n = first; n < end; ++n) {
    if ((n - first) % kTransaction == 0) batches.emplace_back();
    batches.back().push_back(NthRecord(n));
  }
  return batches;
}

absl::Status Import(db::Store* store, const std::vector<std::vector<Record>>& batches) {
  std::atomic<size_t> next{0};
  std::vector<absl::Status> statuses(kThreads);
  std::vector<std::thread> threads;
  for (absl::Status& status : statuses) {
    threads.emplace_back([&] {
      for (size_t i = next++; i < batches.size() && status.ok(); i = next++) {
        status = store->ImportRecords(batches[i]);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const absl::Status& status : statuses) {
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

int Run(const char* path, int64_t count) {
  absl::StatusOr<std::unique_ptr<db::Store>> store =
      db::OpenSqliteStore({.path = path, .owner = "bench_import"});
  if (!store.ok()) {
    std::fprintf(stderr, "bench_import: %s\n", store.status().ToString().c_str());
    return 1;
  }
  absl::Status status = PutBenchArtifacts(store->get());
  double seconds = 0;
  for (int64_t first = 0; first < count && status.ok(); first += kAtATime) {
    const std::vector<std::vector<Record>> batches = Make(first, std::min(count, first + kAtATime));
    const auto start = std::chrono::steady_clock::now();
    status = Import(store->get(), batches);
    seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }
  if (!status.ok()) {
    std::fprintf(stderr, "bench_import: %s\n", status.ToString().c_str());
    return 1;
  }
  std::printf("{\"records\": %lld, \"seconds\": %.3f, \"per_second\": %.0f}\n",
              static_cast<long long>(count), seconds, static_cast<double>(count) / seconds);
  return 0;
}

}  // namespace
}  // namespace kiln::bench

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: bench_import DATABASE COUNT\n");
    return 2;
  }
  return kiln::bench::Run(argv[1], std::atoll(argv[2]));
}
