// SPDX-License-Identifier: Apache-2.0
// What a caller calls a device, resolved to a fingerprint (CLI.md, --device). Pure.
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "proto/contract/device.h"

namespace kiln::server {

// `text`: "cpu" (or ""), a fingerprint's id or line, a product name, an architecture. `present`:
// devices of connected workers; `remembered`: of records and earlier workers, asked where no
// present one fits. INVALID_ARGUMENT: nothing of that name (UNKNOWN_DEVICE), or several different
// ones (AMBIGUOUS_DEVICE, which lists them). FAILED_PRECONDITION (NO_WORKER_FOR_DEVICE): "cpu", and
// none was ever seen. UNIMPLEMENTED: cuda:..., sim:... without one.
absl::StatusOr<DeviceFingerprint> ResolveDevice(absl::string_view text,
                                                const std::vector<DeviceFingerprint>& present,
                                                const std::vector<DeviceFingerprint>& remembered);

}  // namespace kiln::server
