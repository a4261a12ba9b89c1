// SPDX-License-Identifier: Apache-2.0
// libFuzzer over the text forms of plans, launch numbers, schedules and devices: no bytes crash a
// parser, and what one accepts prints as text that means the same. The first byte chooses the form.
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <string>

#include "proto/contract/device.h"
#include "proto/contract/plan.h"
#include "proto/contract/schedule.h"

namespace {

void CheckPlan(const std::string& text) {
  kiln::Plan plan, again;
  std::string error;
  if (!kiln::ParsePlan(text, &plan, &error)) {
    if (error.empty()) std::abort();
    return;
  }
  const std::string printed = kiln::PrintPlan(plan);
  if (!kiln::ParsePlan(printed, &again, &error)) std::abort();
  if (kiln::PrintPlan(again) != printed) std::abort();
}

void CheckLaunchNumber(const std::string& text) {
  constexpr int64_t kLeast = std::numeric_limits<int64_t>::min();
  int64_t value = 0;
  std::string error;
  if (kiln::Evaluate({1, text}, {0, 7, int64_t{1} << 62, kLeast}, &value, &error)) {
    if (value < 0 || value > int64_t{1} << 62) std::abort();
  } else if (error.empty()) {
    std::abort();
  }
}

template <typename Parse>
void CheckLine(const std::string& text, Parse parse) {
  const auto value = parse(text);
  if (!value.ok()) return;
  const std::string printed = Print(*value);
  const auto again = parse(printed);
  if (!again.ok() || Print(*again) != printed) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string text(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (data[0] % 4) {
    case 0:
      CheckPlan(text);
      break;
    case 1:
      CheckLaunchNumber(text);
      break;
    case 2:
      CheckLine(text, kiln::ParseSchedule);
      break;
    case 3:
      CheckLine(text, kiln::ParseDevice);
      break;
  }
  return 0;
}
