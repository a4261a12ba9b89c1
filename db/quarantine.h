// SPDX-License-Identifier: Apache-2.0
// The list of rows found damaged. Reads report, the writer stores the report; nothing is ever
// deleted. Thread-safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <set>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "db/connection.h"

namespace kiln::db {

class Writer;

class Quarantine {
 public:
  // `writer` outlives this, or is stopped before it is gone. Null: of a file that is only read, the
  // list stays in memory.
  explicit Quarantine(Writer* writer) : writer_(writer) {}
  // What earlier runs have found.
  absl::Status Load(Connection& connection);

  // A row of table `kind` is not what it should be: counted each time, stored the first time.
  // Callable from a write.
  void Report(absl::string_view kind, absl::string_view name, absl::string_view reason);
  bool Contains(absl::string_view kind, absl::string_view name);
  // Within the write that replaces the row's content: the old one is kept.
  absl::Status Heal(Connection& connection, absl::string_view kind, absl::string_view name,
                    absl::string_view old_content);

  int64_t size() const { return size_; }        // rows
  int64_t reports() const { return reports_; }  // damaged reads

 private:
  Writer* const writer_;
  std::atomic<int64_t> size_{0}, reports_{0};
  std::mutex mutex_;
  std::set<std::pair<std::string, std::string>> items_;  // guarded by mutex_
};

}  // namespace kiln::db
