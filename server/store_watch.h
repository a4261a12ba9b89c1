// SPDX-License-Identifier: Apache-2.0
// Tells operators when the database begins to fail writes (a full disk, mostly) and when it takes
// them again. What failed is asked again by whom it concerns: workers keep results, callers retry.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace kiln::server {

class StoreWatch {
 public:
  // The store's totals so far; what there is to log, if anything.
  std::optional<std::string> Note(int64_t write_failures, int64_t commits) {
    const bool fails = write_failures > failures_, works = !fails && commits > commits_;
    failures_ = write_failures, commits_ = commits;
    if (fails == failing_ || (failing_ && !works)) return std::nullopt;
    failing_ = fails;
    if (!fails) return "the database takes writes again";
    return "the database fails writes, is its disk full? Results and requests wait, lookups go on";
  }

 private:
  int64_t failures_ = 0, commits_ = 0;
  bool failing_ = false;
};

}  // namespace kiln::server
