// SPDX-License-Identifier: Apache-2.0
#include "proto/contract/device.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "proto/contract/error.h"
#include "proto/contract/workload.h"

namespace kiln {
namespace {

// The integer facts of the line, in its order.
struct IntegerFact {
  absl::string_view name;
  int DeviceFingerprint::*small = nullptr;
  int64_t DeviceFingerprint::*large = nullptr;
};
constexpr IntegerFact kIntegers[] = {
    {"cores", &DeviceFingerprint::cores, nullptr},
    {"threads", &DeviceFingerprint::threads, nullptr},
    {"numa", &DeviceFingerprint::numa_nodes, nullptr},
    {"vector", &DeviceFingerprint::vector_bits, nullptr},
    {"l1d", nullptr, &DeviceFingerprint::l1d_bytes},
    {"l2", nullptr, &DeviceFingerprint::l2_bytes},
    {"l3", nullptr, &DeviceFingerprint::l3_bytes},
    {"l2sharing", &DeviceFingerprint::l2_sharing, nullptr},
    {"l3sharing", &DeviceFingerprint::l3_sharing, nullptr},
    {"line", &DeviceFingerprint::line_bytes, nullptr},
    {"sms", &DeviceFingerprint::multiprocessors, nullptr},
    {"shared", nullptr, &DeviceFingerprint::shared_bytes_per_block},
    {"registers", &DeviceFingerprint::registers_per_block, nullptr},
};

absl::Status Malformed(absl::string_view field, absl::string_view value,
                       absl::string_view allowed) {
  return InvalidField("MALFORMED_DEVICE", absl::StrCat("device.", field), value,
                      "not a device fact", allowed);
}

// A fact is one word of the line: no spaces, no '='.
std::string Word(absl::string_view text) {
  std::string word(text);
  for (char& c : word) {
    if (c == ' ' || c == '=' || c == ',' || c == '\n' || c == '\t') c = '_';
  }
  return word;
}

}  // namespace

bool DeviceFingerprint::Has(absl::string_view feature) const {
  return std::find(features.begin(), features.end(), std::string(feature)) != features.end();
}

std::string Print(const DeviceFingerprint& device) {
  std::vector<std::string> features = device.features;
  for (std::string& feature : features) feature = Word(feature);
  std::sort(features.begin(), features.end());
  std::string line =
      absl::StrCat(device.kind == DeviceKind::kCpu ? "cpu" : "cuda",
                   device.backing == Backing::kHardware ? " hardware" : " simulated",
                   " arch=", Word(device.architecture), " model=", Word(device.model),
                   " features=", absl::StrJoin(features, ","));
  for (const IntegerFact& fact : kIntegers) {
    absl::StrAppend(&line, " ", fact.name, "=",
                    fact.small ? device.*fact.small : device.*fact.large);
  }
  if (!device.mig.empty()) absl::StrAppend(&line, " mig=", Word(device.mig));
  return line;
}

absl::StatusOr<DeviceFingerprint> ParseDevice(absl::string_view line) {
  const std::vector<absl::string_view> parts = absl::StrSplit(line, ' ', absl::SkipEmpty());
  if (parts.size() < 2) return Malformed("line", line, "KIND BACKING {FACT=VALUE}");
  DeviceFingerprint device;
  if (parts[0] != "cpu" && parts[0] != "cuda") return Malformed("kind", parts[0], "cpu or cuda");
  device.kind = parts[0] == "cpu" ? DeviceKind::kCpu : DeviceKind::kCuda;
  if (parts[1] != "hardware" && parts[1] != "simulated") {
    return Malformed("backing", parts[1], "hardware or simulated");
  }
  device.backing = parts[1] == "hardware" ? Backing::kHardware : Backing::kSimulated;
  for (size_t i = 2; i < parts.size(); ++i) {
    const std::pair<absl::string_view, absl::string_view> fact =
        absl::StrSplit(parts[i], absl::MaxSplits('=', 1));
    const auto [name, value] = fact;
    if (name == "arch") {
      device.architecture = std::string(value);
    } else if (name == "model") {
      device.model = std::string(value);
    } else if (name == "mig") {
      device.mig = std::string(value);
    } else if (name == "features") {
      device.features = absl::StrSplit(value, ',', absl::SkipEmpty());
    } else {
      const auto* known =
          std::find_if(std::begin(kIntegers), std::end(kIntegers),
                       [name = name](const IntegerFact& f) { return f.name == name; });
      int64_t number = 0;
      if (known == std::end(kIntegers)) return Malformed(name, value, "the facts that Kiln prints");
      if (!absl::SimpleAtoi(value, &number) || number < 0 || (known->small && number > (1 << 30))) {
        return Malformed(name, value, "an integer from 0");
      }
      if (known->small) {
        device.*known->small = static_cast<int>(number);
      } else {
        device.*known->large = number;
      }
    }
  }
  return device;
}

std::string DeviceId(const DeviceFingerprint& device) {
  const char* prefix = device.backing == Backing::kSimulated ? "sim-"
                       : device.kind == DeviceKind::kCpu     ? "cpu-"
                                                             : "cuda-";
  return absl::StrCat(prefix, Sha256Hex(Print(device)).substr(0, 16));
}

}  // namespace kiln
