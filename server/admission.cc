// SPDX-License-Identifier: Apache-2.0
#include "server/admission.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "proto/contract/error.h"

namespace kiln::server {

absl::Status CheckRequest(int priority, const std::string& request_id) {
  if (priority < kLowestPriority || priority > kHighestPriority) {
    return InvalidField("OUT_OF_RANGE", "priority", absl::StrCat(priority), "out of range",
                        absl::StrCat(kLowestPriority, "..", kHighestPriority));
  }
  const bool printable =
      std::all_of(request_id.begin(), request_id.end(), [](char c) { return c > ' ' && c <= '~'; });
  if (request_id.size() > kMaxRequestIdBytes || !printable) {
    return InvalidField(
        "BAD_REQUEST_ID", "request_id", request_id, "no identifier",
        absl::StrCat("a UUID; at most ", kMaxRequestIdBytes, " printable characters"));
  }
  return absl::OkStatus();
}

absl::Status Admit(const Workload& workload, const DeviceFingerprint& device,
                   const FamilyMatcher& match) {
  if (device.kind != DeviceKind::kCpu) {
    return MakeError(
        absl::StatusCode::kUnimplemented,
        absl::StrCat("device: ", DeviceId(device), ": tuning for CUDA devices is not built yet"),
        {"DEVICE_NOT_BUILT",
         {{"field", "device"}, {"value", DeviceId(device)}, {"allowed", "a CPU"}}});
  }
  if (!workload.graph.is_static()) {
    const DynamicDim& dim = workload.graph.dims.front();
    const std::string value = absl::StrCat(dim.lo, "..", dim.hi);
    return MakeError(
        absl::StatusCode::kUnimplemented,
        absl::StrCat("workload.dims[", dim.name, "]: ", value,
                     " is a range; tuning for dynamic dims is not built yet; bind it to one value"),
        {"DYNAMIC_DIMS",
         {{"field", absl::StrCat("workload.dims[", dim.name, "]")},
          {"value", value},
          {"allowed", "one value"}}});
  }
  const int64_t needed = FootprintBytes(workload.graph);
  if (device.memory_bytes > 0 && needed > device.memory_bytes) {
    return MakeError(absl::StatusCode::kResourceExhausted,
                     absl::StrCat("workload: its tensors take ", needed, " bytes; ",
                                  DeviceId(device), " has ", device.memory_bytes),
                     {"WORKLOAD_TOO_LARGE",
                      {{"field", "workload"},
                       {"value", absl::StrCat(needed)},
                       {"allowed", absl::StrCat("0..", device.memory_bytes, " bytes")},
                       {"retry_after_seconds", "never"}}});
  }
  std::map<std::string, std::string> refused;
  const absl::Status matched = match(workload, device, &refused);
  if (matched.ok()) return absl::OkStatus();
  ErrorInfo info = GetErrorInfo(matched);
  if (info.reason.empty()) info.reason = "NO_FAMILY";
  info.details.emplace("field", "workload");
  info.details.emplace("value", workload.graph.name);
  info.details.emplace("allowed", "what one of the families takes");
  for (const auto& [family, why] : refused) info.details[absl::StrCat("refused_", family)] = why;
  return MakeError(matched.code(), matched.message(), std::move(info));
}

}  // namespace kiln::server
