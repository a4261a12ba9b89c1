// SPDX-License-Identifier: Apache-2.0
// What "best" means for a key: the state of the cache and the length of the burst that a kernel is
// timed in.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace kiln {

enum class CacheState : uint8_t { kWarm, kCold };
enum class Burst : uint8_t { kBurst, kSustained };

struct Objective {
  CacheState cache = CacheState::kWarm;
  Burst burst = Burst::kBurst;
  bool operator==(const Objective&) const = default;
};

std::string Print(const Objective& objective);  // "warm,burst"
// "warm", "cold,sustained", ...; what is left out is taken from `fallback` (a CPU's default is
// warm,burst, a GPU's cold,burst). INVALID_ARGUMENT names the word.
absl::StatusOr<Objective> ParseObjective(absl::string_view text, Objective fallback);

}  // namespace kiln
