// SPDX-License-Identifier: Apache-2.0
// How a workload is mapped to a device: plain data with one canonical text line, as
//   contraction/1 kc=256 mc=144 mr=6 nr=16
// Knobs are named, never stored by position, and sorted by name.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace kiln {

struct Schedule {
  std::string family;
  int version = 1;  // of the family: what its knobs mean
  std::map<std::string, int64_t> knobs;
  bool operator==(const Schedule&) const = default;
};

std::string Print(const Schedule& schedule);
// INVALID_ARGUMENT: not of the form FAMILY/VERSION {KNOB=INTEGER}.
absl::StatusOr<Schedule> ParseSchedule(absl::string_view line);

}  // namespace kiln
