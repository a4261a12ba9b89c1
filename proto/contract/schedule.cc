// SPDX-License-Identifier: Apache-2.0
#include "proto/contract/schedule.h"

#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "proto/contract/error.h"

namespace kiln {
namespace {

constexpr absl::string_view kForm = "FAMILY/VERSION {KNOB=INTEGER}";

bool IsName(absl::string_view text) {
  if (text.empty()) return false;
  for (char c : text) {
    if (!absl::ascii_isalnum(c) && c != '_' && c != '-') return false;
  }
  return true;
}

absl::Status Malformed(absl::string_view part) {
  return InvalidField("MALFORMED_SCHEDULE", "schedule", part, "not part of a schedule", kForm);
}

}  // namespace

std::string Print(const Schedule& schedule) {
  std::string line = absl::StrCat(schedule.family, "/", schedule.version);
  for (const auto& [name, value] : schedule.knobs) absl::StrAppend(&line, " ", name, "=", value);
  return line;
}

absl::StatusOr<Schedule> ParseSchedule(absl::string_view line) {
  const std::vector<absl::string_view> parts = absl::StrSplit(line, ' ', absl::SkipEmpty());
  if (parts.empty()) return Malformed(line);
  Schedule schedule;
  const std::pair<absl::string_view, absl::string_view> head =
      absl::StrSplit(parts[0], absl::MaxSplits('/', 1));
  if (!IsName(head.first) || !absl::SimpleAtoi(head.second, &schedule.version) ||
      schedule.version < 1) {
    return Malformed(parts[0]);
  }
  schedule.family = std::string(head.first);
  for (size_t i = 1; i < parts.size(); ++i) {
    const std::pair<absl::string_view, absl::string_view> knob =
        absl::StrSplit(parts[i], absl::MaxSplits('=', 1));
    int64_t value = 0;
    if (!IsName(knob.first) || !absl::SimpleAtoi(knob.second, &value)) return Malformed(parts[i]);
    if (!schedule.knobs.emplace(std::string(knob.first), value).second) return Malformed(parts[i]);
  }
  return schedule;
}

}  // namespace kiln
