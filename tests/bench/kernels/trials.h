// SPDX-License-Identifier: Apache-2.0
// One shape's search: makes, checks and times candidates in this process, and keeps the best three.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "client/runtime/kiln_runtime.h"
#include "proto/contract/workload.h"
#include "tests/bench/kernels/subject.h"

namespace kiln::bench {

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

// `want`: the output's elements. Candidates that differ from them are named on stderr and dropped.
Found RunTrials(const std::string& shape, const Workload& workload, const DeviceFingerprint& device,
                const Settings& settings, kiln_pool* pool, const Operands& operands,
                const std::vector<float>& want, const std::string& directory);

}  // namespace kiln::bench
