// SPDX-License-Identifier: Apache-2.0
// This machine's CPU as a device: what code may use of it here and now, under this process's
// affinity and quota, not what the model could have. Read once per process; the worker registers
// it, `kiln inspect` shows it.
#pragma once

#include "absl/status/statusor.h"
#include "proto/contract/device.h"
#include "worker/device/host_source.h"

namespace kiln::worker {

// `threads`: that kernels are to run with; 0: one per usable core. INVALID_ARGUMENT: fewer than 0,
// or more than the logical CPUs that this process may use. UNAVAILABLE: the kernel does not say
// what CPUs there are.
absl::StatusOr<DeviceFingerprint> ProbeHost(int threads);
absl::StatusOr<DeviceFingerprint> ProbeHost(const HostSource& source, int threads);

}  // namespace kiln::worker
