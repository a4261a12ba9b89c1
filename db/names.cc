// SPDX-License-Identifier: Apache-2.0
#include "db/names.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"

namespace kiln::db {

std::string RowName(absl::string_view prefix, int64_t id) {
  return absl::StrCat(prefix, absl::Hex(id, absl::kZeroPad16));
}

std::optional<int64_t> ParseRowName(absl::string_view prefix, absl::string_view name) {
  if (!absl::StartsWith(name, prefix) || name.size() != prefix.size() + 16) return std::nullopt;
  uint64_t id = 0;
  for (char c : name.substr(prefix.size())) {
    if (!(c >= '0' && c <= '9') && !(c >= 'a' && c <= 'f')) return std::nullopt;
    id = id << 4 | static_cast<uint64_t>(c <= '9' ? c - '0' : c - 'a' + 10);
  }
  return static_cast<int64_t>(id);
}

int64_t RowNumbers::Next() {
  last_ = std::max(last_ + 1, absl::ToUnixMicros(absl::Now()) * 1024);
  return last_;
}

}  // namespace kiln::db
