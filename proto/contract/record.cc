// SPDX-License-Identifier: Apache-2.0
#include "proto/contract/record.h"

#include "absl/strings/str_cat.h"
#include "proto/contract/words.h"

namespace kiln {
namespace {

constexpr absl::string_view kMatches[] = {"exact", "stale", "near", "predicted", "default", "none"};

}  // namespace

std::string Print(const Key& key) {
  return absl::StrCat(key.signature, " ", key.device, " ", Print(key.objective), " ", key.salt);
}

absl::string_view Print(Match match) { return kMatches[static_cast<int>(match)]; }
std::optional<Match> ParseMatch(absl::string_view word) { return FindWord<Match>(kMatches, word); }

}  // namespace kiln
