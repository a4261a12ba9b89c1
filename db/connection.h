// SPDX-License-Identifier: Apache-2.0
// One SQLite connection with its prepared statements. Used by one thread at a time.
//
//   Statement s = connection.Query("SELECT a, b FROM t WHERE c = ?", name);
//   KILN_ASSIGN_OR_RETURN(const bool found, s.Step());
//   if (found) Use(s.Text(0), s.Integer(1));
//
// SQL is always a literal: the cache of statements goes by its address, and values are always
// bound.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

struct sqlite3;
struct sqlite3_stmt;

namespace kiln::db {

// SQLite's result as a status: UNAVAILABLE with reason DISK_FULL, DISK_FAILED or DATABASE_BUSY;
// FAILED_PRECONDITION DATABASE_READ_ONLY; DATA_LOSS DATABASE_DAMAGED; INTERNAL for what is our own
// fault.
absl::Status SqliteStatus(sqlite3* db, int result, absl::string_view doing);

struct Blob {
  absl::string_view bytes;
};
struct Null {};

// A bound statement. Gives itself back to the connection when it is destroyed, which must happen
// before the next use of the same SQL.
class Statement {
 public:
  Statement(sqlite3* db, sqlite3_stmt* statement, absl::Status status)
      : db_(db), statement_(statement), status_(std::move(status)) {}
  Statement(Statement&& other) noexcept
      : db_(other.db_), statement_(other.statement_), status_(std::move(other.status_)) {
    other.statement_ = nullptr;
  }
  Statement(const Statement&) = delete;
  ~Statement();

  // Whether there is a row; the columns below are those of that row, and live until the next step.
  absl::StatusOr<bool> Step();
  absl::string_view Text(int column) const;  // or the bytes of a blob
  int64_t Integer(int column) const;
  bool IsNull(int column) const;

  void Bind(int at, absl::string_view text);
  void Bind(int at, const std::string& text) { Bind(at, absl::string_view(text)); }
  void Bind(int at, const char* text) { Bind(at, absl::string_view(text)); }
  void Bind(int at, int64_t value);
  void Bind(int at, int value) { Bind(at, static_cast<int64_t>(value)); }
  void Bind(int at, double value);
  void Bind(int at, Blob blob);
  void Bind(int at, Null);

 private:
  void Check(int result);

  sqlite3* db_;
  sqlite3_stmt* statement_;  // null: status_ says why
  absl::Status status_;
};

class Connection {
 public:
  // kImmutable: nobody writes the file; it is read without locks, and nothing is made beside it.
  enum class Mode { kImmutable, kReadOnly, kReadWrite, kCreate };
  static absl::StatusOr<std::unique_ptr<Connection>> Open(const std::string& path, Mode mode);
  ~Connection();
  Connection(const Connection&) = delete;

  // Values are bound in order; they must live until the statement is destroyed.
  template <typename... Values>
  Statement Query(const char* sql, const Values&... values) {
    Statement statement = Prepare(sql);
    int at = 0;
    (statement.Bind(++at, values), ...);
    return statement;
  }
  // Runs a statement that has no rows.
  template <typename... Values>
  absl::Status Run(const char* sql, const Values&... values) {
    return Query(sql, values...).Step().status();
  }
  // The single integer that a query answers; NOT_FOUND if it has no row.
  template <typename... Values>
  absl::StatusOr<int64_t> QueryInteger(const char* sql, const Values&... values) {
    Statement statement = Query(sql, values...);
    absl::StatusOr<bool> row = statement.Step();
    if (!row.ok()) return row.status();
    if (!*row) return absl::NotFoundError("no such row");
    return statement.Integer(0);
  }
  // Several statements, without values, not cached: pragmas, migrations.
  absl::Status Script(const std::string& sql);

  int64_t last_id() const;
  int64_t changed() const;  // rows by the last statement
  bool in_transaction() const;
  sqlite3* handle() const { return db_; }

 private:
  explicit Connection(sqlite3* db) : db_(db) {}
  Statement Prepare(const char* sql);

  sqlite3* db_;
  std::unordered_map<const char*, sqlite3_stmt*> statements_;
};

}  // namespace kiln::db
