// SPDX-License-Identifier: Apache-2.0
// The schedule `library/1`: OpenBLAS's gemm, with an epilogue step of ours where one is needed. A
// candidate and the baseline; no search proposes it. Pure.
#pragma once

#include "absl/status/statusor.h"
#include "proto/contract/device.h"
#include "proto/contract/schedule.h"
#include "proto/contract/workload.h"
#include "worker/compiler/tile/program.h"

namespace kiln::compiler {

// FAILED_PRECONDITION with the reason: the policy excludes libraries, or the routine does not take
// these strides. UNIMPLEMENTED: no contraction at all.
absl::StatusOr<tile::Program> BuildLibraryProgram(const Workload& workload,
                                                  const DeviceFingerprint& device,
                                                  const Schedule& schedule);

}  // namespace kiln::compiler
