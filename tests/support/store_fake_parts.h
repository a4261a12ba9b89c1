// SPDX-License-Identifier: Apache-2.0
// What both sources of StoreFake use.
#pragma once

#include <algorithm>
#include <iterator>
#include <map>
#include <mutex>
#include <string>

#include "absl/strings/str_cat.h"
#include "db/store.h"
#include "proto/contract/error.h"

namespace kiln::db {

using Lock = std::lock_guard<std::mutex>;

inline absl::Status NotFound(absl::string_view what, absl::string_view name) {
  return MakeError(absl::StatusCode::kNotFound, absl::StrCat("there is no ", what, " ", name),
                   {"NOT_FOUND", {{"name", std::string(name)}}});
}

// One page of a map from its greatest key down. `accept` chooses.
template <typename T, typename F>
absl::StatusOr<PageOf<T>> NewestFirst(const std::map<std::string, T>& all, const Page& page,
                                      F accept) {
  const int size = page.size < 1 ? 100 : std::min(page.size, 1000);
  auto end = all.end();
  if (!page.token.empty()) {
    end = all.find(page.token);
    if (end == all.end()) {
      return InvalidField("BAD_PAGE_TOKEN", "page_token", page.token, "no token of this list",
                          "what the last page returned");
    }
  }
  PageOf<T> out;
  for (auto it = std::make_reverse_iterator(end); it != all.rend(); ++it) {
    if (!accept(it->second)) continue;
    if (static_cast<int>(out.items.size()) == size) return out;
    out.items.push_back(it->second);
    out.next_token = it->first;
  }
  out.next_token.clear();
  return out;
}

}  // namespace kiln::db
