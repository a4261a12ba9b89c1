// SPDX-License-Identifier: Apache-2.0
// Public names of rows. A name is its row number in 16 hex digits behind a prefix, and a row number
// is the moment that it was given, in units of a 1024th of a microsecond since 1970, so that rows
// lie in the order they were made and two databases hardly ever give the same name.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"

namespace kiln::db {

inline constexpr absl::string_view kRecordPrefix = "rec-";
inline constexpr absl::string_view kJobPrefix = "jobs/";
inline constexpr absl::string_view kOperationPrefix = "operations/";

std::string RowName(absl::string_view prefix, int64_t id);
// Nothing if the name is not of that form.
std::optional<int64_t> ParseRowName(absl::string_view prefix, absl::string_view name);

// Gives row numbers that only grow, even where the clock steps back. Used by one thread.
class RowNumbers {
 public:
  explicit RowNumbers(int64_t last = 0) : last_(last) {}
  int64_t Next();

 private:
  int64_t last_;
};

}  // namespace kiln::db
