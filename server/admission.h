// SPDX-License-Identifier: Apache-2.0
// What may become a job: checked at submission, so that no job is started that cannot end well.
// Pure but for the compiler's own (pure) matcher, which is handed in.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "absl/status/status.h"
#include "proto/contract/device.h"
#include "proto/contract/workload.h"

namespace kiln::server {

// worker/compiler's MatchFamily: OK, or UNIMPLEMENTED with all the reasons; `refused` gets them by
// family.
using FamilyMatcher = std::function<absl::Status(const Workload&, const DeviceFingerprint&,
                                                 std::map<std::string, std::string>* refused)>;

inline constexpr int kLowestPriority = -1000;
inline constexpr int kHighestPriority = 1000;
inline constexpr int kMaxRequestIdBytes = 128;

// INVALID_ARGUMENT: priority or request_id.
absl::Status CheckRequest(int priority, const std::string& request_id);

// UNIMPLEMENTED: a device or dims that are not built yet, or no family takes the workload.
// RESOURCE_EXHAUSTED (WORKLOAD_TOO_LARGE): its tensors need more than the device's memory.
absl::Status Admit(const Workload& workload, const DeviceFingerprint& device,
                   const FamilyMatcher& match);

}  // namespace kiln::server
