// SPDX-License-Identifier: Apache-2.0
#include "db/quarantine.h"

#include "absl/time/clock.h"
#include "db/writer.h"
#include "proto/contract/error.h"

namespace kiln::db {
namespace {

std::pair<std::string, std::string> Item(absl::string_view kind, absl::string_view name) {
  return {std::string(kind), std::string(name)};
}

absl::Status Insert(Connection& connection, absl::string_view kind, absl::string_view name,
                    absl::string_view reason) {
  return connection.Run("INSERT INTO quarantine (kind, name, reason, seen) VALUES (?, ?, ?, ?)",
                        kind, name, reason, absl::ToUnixNanos(absl::Now()));
}

}  // namespace

absl::Status Quarantine::Load(Connection& connection) {
  Statement rows = connection.Query("SELECT kind, name FROM quarantine WHERE healed IS NULL");
  std::lock_guard<std::mutex> lock(mutex_);
  while (true) {
    KILN_ASSIGN_OR_RETURN(const bool row, rows.Step());
    if (!row) break;
    items_.insert(Item(rows.Text(0), rows.Text(1)));
  }
  size_ = items_.size();
  return absl::OkStatus();
}

void Quarantine::Report(absl::string_view kind, absl::string_view name, absl::string_view reason) {
  ++reports_;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (!items_.insert(Item(kind, name)).second) return;
    size_ = items_.size();
  }
  if (writer_ == nullptr) return;
  writer_->Post([kind = std::string(kind), name = std::string(name), reason = std::string(reason)](
                    Connection& connection) { return Insert(connection, kind, name, reason); });
}

bool Quarantine::Contains(absl::string_view kind, absl::string_view name) {
  if (size_ == 0) return false;
  std::lock_guard<std::mutex> lock(mutex_);
  return items_.count(Item(kind, name)) > 0;
}

absl::Status Quarantine::Heal(Connection& connection, absl::string_view kind,
                              absl::string_view name, absl::string_view old_content) {
  {
    // Should the write be undone, the next read reports the row again.
    std::lock_guard<std::mutex> lock(mutex_);
    items_.erase(Item(kind, name));
    size_ = items_.size();
  }
  const int64_t now = absl::ToUnixNanos(absl::Now());
  KILN_RETURN_IF_ERROR(
      connection.Run("UPDATE quarantine SET healed = ?, content = ? WHERE kind = ? AND name = ? "
                     "AND healed IS NULL",
                     now, Blob{old_content}, kind, name));
  if (connection.changed() > 0) return absl::OkStatus();
  // Found by the write itself.
  return connection.Run(
      "INSERT INTO quarantine (kind, name, reason, content, seen, healed) "
      "VALUES (?, ?, 'replaced', ?, ?, ?)",
      kind, name, Blob{old_content}, now, now);
}

}  // namespace kiln::db
