// SPDX-License-Identifier: Apache-2.0
// Decides whether a candidate's plan computes the workload: launches it on input sets in guarded,
// poisoned buffers and judges every output element. Called by the bench child, which brings the
// launch and the compiled reference. A candidate that touches memory beyond its tensors kills the
// process; guard_fault.h tells the child's handler where. Not thread-safe; one verification at a
// time per process.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/contract/outcome.h"
#include "proto/contract/workload.h"
#include "worker/verify/references.h"

namespace kiln::verify {

// Launches the candidate once and returns when it is done. `tensors`: base pointers of inputs,
// constants and outputs, in order. Constants hold other values at other addresses from call to
// call, so it prepacks before it launches. An error makes the outcome `launch`, with its message as
// the reason.
using Launch = std::function<absl::Status(const std::vector<void*>& tensors)>;

enum class Depth {
  kScreen,  // the small-integer and the random set: enough to go on measuring a candidate
  kFull,    // every set that the policy has: what a record needs before it is published
};

struct VerifyResult {
  Stage stage = Stage::kMeasured;  // kMeasured: all passed. Else kLaunch, kOutOfBounds or kMismatch
  std::string
      reason;  // empty if all passed; else one line that names set, output, element and values
  Verification verification;  // of the sets that passed
  bool ok() const { return stage == Stage::kMeasured; }
};

// Verifies one candidate. `references` is of the same workload and is shared by all candidates of a
// job; sets that it does not hold yet are computed. Errors are not the candidate's fault:
// RESOURCE_EXHAUSTED (no memory for buffers or reference), INTERNAL (the reference refused its
// inputs).
absl::StatusOr<VerifyResult> VerifyPlan(const Workload& workload, ReferenceCache& references,
                                        const Launch& launch, Depth depth);

}  // namespace kiln::verify
