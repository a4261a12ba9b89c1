// SPDX-License-Identifier: Apache-2.0
// The worker's command line and environment: the only place where either is read.
#pragma once

#include <string>

#include "absl/time/time.h"

namespace kiln::worker {

struct Options {
  std::string server = "127.0.0.1:7600";
  std::string device = "cpu";
  int threads = 0;  // 0: one per usable core
  std::string compiler = "g++";
  std::string temp_dir = "/tmp";
  std::string cache_dir;  // empty: none
  int64_t cache_bytes = int64_t{1} << 30;
  absl::Duration compile_limit = absl::Seconds(20), run_limit = absl::Seconds(10);
  int64_t compile_memory_bytes = int64_t{4} << 30;
  int compile_at_once = 0;  // 0: one per usable core
};

struct Parsed {
  Options options;
  bool exit = false;  // print `text` (to stdout if the code is 0) and end with `code`
  int code = 0;
  std::string text;
};
// Does not print and does not end the process.
Parsed ParseOptions(int argc, const char* const* argv);

}  // namespace kiln::worker
