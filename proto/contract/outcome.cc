// SPDX-License-Identifier: Apache-2.0
#include "proto/contract/outcome.h"

#include "proto/contract/words.h"

namespace kiln {
namespace {

constexpr absl::string_view kStages[] = {"measured",      "illegal", "emit",     "compile",
                                         "launch",        "timeout", "crash",    "resources",
                                         "out_of_bounds", "finding", "mismatch", "too_slow"};
constexpr absl::string_view kTimers[] = {"cupti", "events", "clock", "simulated"};

}  // namespace

absl::string_view Print(Stage stage) { return kStages[static_cast<int>(stage)]; }
std::optional<Stage> ParseStage(absl::string_view word) { return FindWord<Stage>(kStages, word); }

absl::string_view Print(Timer timer) { return kTimers[static_cast<int>(timer)]; }
std::optional<Timer> ParseTimer(absl::string_view word) { return FindWord<Timer>(kTimers, word); }

}  // namespace kiln
