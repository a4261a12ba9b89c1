// SPDX-License-Identifier: Apache-2.0
// The exit codes that scripts rely on.
#pragma once

#include "absl/status/status.h"

namespace kiln::cli {

enum ExitCode : int {
  kDone = 0,
  kInternal = 1,
  kUsage = 2,  // usage or invalid program
  kNothingStored = 3,
  kUnavailable = 4,  // server or device
  kJobFailed = 5,
  kRefused = 6,    // quota, queue full, not permitted, not implemented
  kDifferent = 7,  // result differs from the reference
  kInterrupted = 130,
};

// Of an error that stopped a command.
ExitCode ExitCodeOf(const absl::Status& status);
// Of a job's error: kJobFailed, unless it was a device that never came.
ExitCode ExitCodeOfJob(const absl::Status& error);

}  // namespace kiln::cli
