// SPDX-License-Identifier: Apache-2.0
#include "server/devices.h"

#include <functional>
#include <map>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "proto/contract/error.h"

namespace kiln::server {
namespace {

using Fits = std::function<bool(const DeviceFingerprint&)>;

bool IsHardware(const DeviceFingerprint& device, DeviceKind kind) {
  return device.kind == kind && device.backing == Backing::kHardware;
}

// "sim:ARCH:PRODUCT" without "sim:".
bool IsSimulated(const DeviceFingerprint& device, absl::string_view what) {
  const std::vector<std::string> parts = absl::StrSplit(what, absl::MaxSplits(':', 1));
  return device.backing == Backing::kSimulated && device.architecture == parts[0] &&
         (parts.size() < 2 || absl::EqualsIgnoreCase(device.name, parts[1]));
}

Fits Meaning(absl::string_view text) {
  if (text == "cpu") return [](const auto& d) { return IsHardware(d, DeviceKind::kCpu); };
  if (text == "cuda:any") return [](const auto& d) { return IsHardware(d, DeviceKind::kCuda); };
  const std::string name(text);
  if (absl::StartsWith(name, "sim:"))
    return [name](const auto& d) { return IsSimulated(d, name.substr(4)); };
  return [name](const DeviceFingerprint& d) {
    if (name == DeviceId(d) || name == Print(d)) return true;
    // A simulated device is another one than that which it imitates.
    return d.backing == Backing::kHardware &&
           (name == d.architecture || absl::EqualsIgnoreCase(name, d.name));
  };
}

std::map<std::string, DeviceFingerprint> Choose(const std::vector<DeviceFingerprint>& devices,
                                                const Fits& fits) {
  std::map<std::string, DeviceFingerprint> chosen;
  for (const DeviceFingerprint& device : devices) {
    if (fits(device)) chosen.emplace(DeviceId(device), device);
  }
  return chosen;
}

std::string Describe(const std::map<std::string, DeviceFingerprint>& devices) {
  return absl::StrJoin(devices, ", ", [](std::string* out, const auto& item) {
    absl::StrAppend(out, item.first, " (",
                    item.second.name.empty() ? item.second.model : item.second.name, ", ",
                    item.second.threads, " threads)");
  });
}

absl::Status NothingFits(absl::string_view text, const std::vector<DeviceFingerprint>& present,
                         const std::vector<DeviceFingerprint>& remembered) {
  if (text == "cpu") {
    return MakeError(
        absl::StatusCode::kFailedPrecondition,
        "device: no CPU worker is connected and no record names one; start kiln-worker --device "
        "cpu",
        {"NO_WORKER_FOR_DEVICE",
         {{"field", "device"}, {"value", "cpu"}, {"allowed", "a connected worker's device"}}});
  }
  if (absl::StartsWith(text, "cuda:") || absl::StartsWith(text, "sim:")) {
    return MakeError(
        absl::StatusCode::kUnimplemented,
        absl::StrCat(
            "device: ", text,
            ": no such device is known, and this build has no CUDA device and no simulator"),
        {"DEVICE_NOT_BUILT",
         {{"field", "device"},
          {"value", std::string(text)},
          {"allowed", "cpu, or the id of a CPU"}}});
  }
  auto known = Choose(remembered, [](const auto&) { return true; });
  known.merge(Choose(present, [](const auto&) { return true; }));
  return InvalidField(
      "UNKNOWN_DEVICE", "device", text, "neither known by name nor connected",
      absl::StrCat("cpu, cuda:any, sim:ARCH:PRODUCT", known.empty() ? "" : ", ", Describe(known)));
}

}  // namespace

absl::StatusOr<DeviceFingerprint> ResolveDevice(absl::string_view text,
                                                const std::vector<DeviceFingerprint>& present,
                                                const std::vector<DeviceFingerprint>& remembered) {
  text = absl::StripAsciiWhitespace(text);
  if (text.empty()) text = "cpu";
  const Fits fits = Meaning(text);
  auto chosen = Choose(present, fits);
  if (chosen.empty()) chosen = Choose(remembered, fits);
  if (chosen.empty()) return NothingFits(text, present, remembered);
  if (chosen.size() > 1) {
    return InvalidField("AMBIGUOUS_DEVICE", "device", text, "the name of several devices",
                        Describe(chosen));
  }
  return chosen.begin()->second;
}

}  // namespace kiln::server
