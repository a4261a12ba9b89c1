// SPDX-License-Identifier: Apache-2.0
#include "proto/contract/objective.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "proto/contract/error.h"

namespace kiln {

std::string Print(const Objective& objective) {
  return absl::StrCat(objective.cache == CacheState::kWarm ? "warm" : "cold", ",",
                      objective.burst == Burst::kBurst ? "burst" : "sustained");
}

absl::StatusOr<Objective> ParseObjective(absl::string_view text, Objective fallback) {
  Objective objective = fallback;
  const std::vector<absl::string_view> words = absl::StrSplit(text, ',', absl::SkipWhitespace());
  for (absl::string_view word : words) {
    if (word == "warm") {
      objective.cache = CacheState::kWarm;
    } else if (word == "cold") {
      objective.cache = CacheState::kCold;
    } else if (word == "burst") {
      objective.burst = Burst::kBurst;
    } else if (word == "sustained") {
      objective.burst = Burst::kSustained;
    } else {
      return InvalidField("UNKNOWN_OBJECTIVE", "objective", word, "not an objective",
                          "warm|cold,burst|sustained");
    }
  }
  return objective;
}

}  // namespace kiln
