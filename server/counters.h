// SPDX-License-Identifier: Apache-2.0
// What the server counts, as plain atomics: the parts that count know nothing of metrics.cc, which
// exports them.
#pragma once

#include <atomic>
#include <cstdint>

namespace kiln::server {

using Count64 = std::atomic<int64_t>;

struct Counters {
  // Lookups by outcome; a stale or absent record is a miss to a caller who wants an exact one.
  Count64 lookup_hits{0}, lookup_misses{0}, lookup_errors{0};
  Count64 lookups_from_memory{0};  // of the above: answered without the store
  Count64 answers_read_ahead{0};
  // TuneSchedule by what came of it.
  Count64 tunes_stored{0}, tunes_created{0}, tunes_joined{0}, tunes_repeated{0}, tunes_refused{0};
  // Ends of jobs.
  Count64 jobs_succeeded{0}, jobs_failed{0}, jobs_cancelled{0};
  // Leases and how they end.
  Count64 leases_granted{0}, leases_released{0}, leases_expired{0}, leases_kept{0},
      leases_fenced{0};
  Count64 swept_leases{0};  // granted by the periodic sweep alone: a notification was missed
  Count64 outcomes{0};
  Count64 published{0}, not_better{0}, records_refused{0};
  Count64 not_stored{0};  // a record that could not be read back after it was written
  Count64 store_failures{0};
  // Seconds, as sums over ended jobs: queue = created to first lease, run = under a lease.
  std::atomic<double> queue_seconds{0}, run_seconds{0};
};

inline void Add(Count64& counter, int64_t n = 1) {
  counter.fetch_add(n, std::memory_order_relaxed);
}

}  // namespace kiln::server
