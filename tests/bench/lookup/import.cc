// SPDX-License-Identifier: Apache-2.0
// bench_import DATABASE COUNT: imports the records 0 .. COUNT-1, durably, in transactions of 1,000,
// and prints one JSON object with the rate. Making the records is not timed. Records that are there
// already (an earlier, interrupted run) are skipped.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "db/sqlite_store.h"
#include "tests/bench/lookup/records.h"

namespace kiln::bench {
namespace {

constexpr int64_t kBatch = 1000;

int Run(const char* path, int64_t count) {
  absl::StatusOr<std::unique_ptr<db::Store>> store =
      db::OpenSqliteStore({.path = path, .owner = "bench_import"});
  if (!store.ok()) {
    std::fprintf(stderr, "bench_import: %s\n", store.status().ToString().c_str());
    return 1;
  }
  absl::Status status = PutBenchArtifacts(store->get());
  double seconds = 0;
  const int64_t present = (*store)->Counters()["records"] / kBatch * kBatch;
  for (int64_t first = present; first < count && status.ok(); first += kBatch) {
    std::vector<Record> batch;
    for (int64_t n = first; n < std::min(count, first + kBatch); ++n) batch.push_back(NthRecord(n));
    const auto start = std::chrono::steady_clock::now();
    status = (*store)->ImportRecords(batch);
    seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }
  if (!status.ok()) {
    std::fprintf(stderr, "bench_import: %s\n", status.ToString().c_str());
    return 1;
  }
  const int64_t imported = std::max<int64_t>(0, count - present);
  std::printf("{\"records\": %lld, \"imported\": %lld, \"seconds\": %.3f, \"per_second\": %.0f}\n",
              static_cast<long long>(count), static_cast<long long>(imported), seconds,
              seconds > 0 ? static_cast<double>(imported) / seconds : 0.0);
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
