// SPDX-License-Identifier: Apache-2.0
// Enumerations and their words: one table each, in the order of the enumeration.
#pragma once

#include <cstddef>
#include <optional>

#include "absl/strings/string_view.h"

namespace kiln {

template <typename Enum, size_t N>
std::optional<Enum> FindWord(const absl::string_view (&words)[N], absl::string_view word) {
  for (size_t i = 0; i < N; ++i) {
    if (words[i] == word) return static_cast<Enum>(i);
  }
  return std::nullopt;
}

}  // namespace kiln
