// SPDX-License-Identifier: Apache-2.0
// The command line of kiln-server. The one place where the environment is read.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "proto/contract/job.h"
#include "server/job_table.h"

namespace kiln::server {

struct Options {
  std::string db;
  std::string listen = "127.0.0.1:7600";  // HOST:PORT, HOST:0 or unix:PATH
  std::string metrics_listen;             // HOST:PORT or HOST:0; empty: no metrics endpoint
  absl::Duration heartbeat = absl::Seconds(2);
  JobLimits jobs;
  Budget default_budget;
  absl::Duration worker_grace = absl::Seconds(15);  // after start: workers may be on their way back
  absl::Duration drain = absl::Seconds(5);
  int64_t max_held_calls = 100'000;    // WaitOperation, WatchOperation, LeaseJob
  int64_t max_queued_calls = 100'000;  // that wait for a thread of the pool
  int64_t max_artifact_bytes = int64_t{256} << 20;
  int64_t cache_bytes = int64_t{384} << 20;  // of lookups; an answer takes some 2 KiB
  bool read_ahead = true;                    // after start, answers are read into that memory
  int64_t rpc_memory_bytes = int64_t{4} << 30;
  int threads = 8;
  bool allow_network_fs = false;
  bool read_only = false;
  // Instead of serving: another database to merge into `db`, or a copy of it to make.
  std::string merge, export_to;
  bool dry_run = false;
  bool upgrade = true;
  std::string log_level = "info";
};

struct Parsed {
  Options options;
  bool exit = false;  // --help, --version or a usage error: say `text` and go
  int exit_code = 0;
  std::string text;
};
Parsed ParseOptions(int argc, const char* const* argv);

}  // namespace kiln::server
