// SPDX-License-Identifier: Apache-2.0
// A job from lease to end: analyse, match a family, search its space by emitting, compiling,
// verifying and measuring candidates, and re-measure the best beside the incumbent and the vendor's
// library. The worker's story; read it first.
#pragma once

#include <string>

#include "absl/time/time.h"
#include "worker/compile/cancel.h"
#include "worker/compile/host_compiler.h"
#include "worker/compile/temp_root.h"
#include "worker/frontend.h"
#include "worker/job.h"

namespace kiln::worker {

// What a worker brings to every job. All outlive it.
struct JobTools {
  DeviceFingerprint device;
  const Frontend* frontend = nullptr;
  const HostCompiler* compiler = nullptr;
  const TempRoot* temp_root = nullptr;
  std::string binary;  // answers to --supervise and --bench-child
  std::string worker;  // its name, for records
  int compile_at_once = 1;
  absl::Duration run_limit = absl::Seconds(10);  // of one launch
};

// Runs the job to its end; only a cancel, within two seconds, or the budget stops it early. Ends
// within the budget's seconds plus one bounded candidate, and tries at least one.
JobEnd RunJob(const JobLease& lease, const JobTools& tools, JobReporter* reporter,
              const CancelToken& cancel);

}  // namespace kiln::worker
