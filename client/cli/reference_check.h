// SPDX-License-Identifier: Apache-2.0
// Whether a kernel's results are right: against the compiled f64 reference, on any data.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "proto/contract/workload.h"
#include "worker/compiler/analysis/host_tensor.h"

namespace kiln::cli {

struct CheckResult {
  double max_error = 0;  // as worker/verify/verdict.h has them
  double tolerance = 0;
  int64_t checked = 0;  // elements of outputs
  bool right = true;
  std::string reason;  // of the first wrong element
};

// `inputs`: inputs and constants, in order, as they were before the launch; `outputs` likewise.
// FAILED_PRECONDITION (NO_COMPILER, TEMP_...): no reference can be had here. INVALID_ARGUMENT
// (PROMISE_BROKEN): a subscript that depends on the data falls outside. UNIMPLEMENTED: dynamic
// dims.
absl::StatusOr<CheckResult> CheckAgainstReference(const Workload& workload,
                                                  const std::vector<compiler::HostTensor>& inputs,
                                                  const std::vector<compiler::HostTensor>& outputs,
                                                  int threads);

}  // namespace kiln::cli
