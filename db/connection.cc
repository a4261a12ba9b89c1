// SPDX-License-Identifier: Apache-2.0
#include "db/connection.h"

#include <sqlite3.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "proto/contract/error.h"

namespace kiln::db {

absl::Status SqliteStatus(sqlite3* db, int result, absl::string_view doing) {
  const int extended = db ? sqlite3_extended_errcode(db) : result;
  const std::string message = absl::StrCat("database: ", doing, ": ", sqlite3_errstr(result),
                                           db ? absl::StrCat(" (", sqlite3_errmsg(db), ")") : "");
  const ErrorInfo info{"", {{"sqlite_code", absl::StrCat(extended)}}};
  auto make = [&](absl::StatusCode code, const char* reason) {
    return MakeError(code, message, {reason, info.details});
  };
  switch (result & 0xff) {
    case SQLITE_OK:
    case SQLITE_ROW:
    case SQLITE_DONE:
      return absl::OkStatus();
    case SQLITE_FULL:
      return make(absl::StatusCode::kUnavailable, "DISK_FULL");
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
    case SQLITE_PROTOCOL:
      return make(absl::StatusCode::kUnavailable, "DATABASE_BUSY");
    case SQLITE_IOERR:
    case SQLITE_CANTOPEN:
    case SQLITE_NOMEM:
    case SQLITE_INTERRUPT:
      return make(absl::StatusCode::kUnavailable, "DISK_FAILED");
    case SQLITE_READONLY:
    case SQLITE_PERM:
      return make(absl::StatusCode::kFailedPrecondition, "DATABASE_READ_ONLY");
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
      return make(absl::StatusCode::kDataLoss, "DATABASE_DAMAGED");
    default:
      return make(absl::StatusCode::kInternal, "DATABASE_FAULT");
  }
}

// --- Statement ---

Statement::~Statement() {
  if (!statement_) return;
  sqlite3_reset(statement_);
  sqlite3_clear_bindings(statement_);
}

void Statement::Check(int result) {
  if (result != SQLITE_OK && status_.ok()) status_ = SqliteStatus(db_, result, "bind");
}

absl::StatusOr<bool> Statement::Step() {
  if (!status_.ok()) return status_;
  const int result = sqlite3_step(statement_);
  if (result == SQLITE_ROW) return true;
  if (result == SQLITE_DONE) return false;
  status_ = SqliteStatus(db_, result, sqlite3_sql(statement_));
  return status_;
}

absl::string_view Statement::Text(int column) const {
  // For text and blobs alike the bytes are read as they are stored.
  const void* bytes = sqlite3_column_blob(statement_, column);
  const int size = sqlite3_column_bytes(statement_, column);
  return absl::string_view(static_cast<const char*>(bytes), size);
}

int64_t Statement::Integer(int column) const { return sqlite3_column_int64(statement_, column); }

bool Statement::IsNull(int column) const {
  return sqlite3_column_type(statement_, column) == SQLITE_NULL;
}

void Statement::Bind(int at, absl::string_view text) {
  if (!statement_) return;
  // A null pointer would bind NULL; an empty view may have one.
  Check(sqlite3_bind_text64(statement_, at, text.data() ? text.data() : "", text.size(),
                            SQLITE_STATIC, SQLITE_UTF8));
}

void Statement::Bind(int at, int64_t value) {
  if (statement_) Check(sqlite3_bind_int64(statement_, at, value));
}

void Statement::Bind(int at, double value) {
  if (statement_) Check(sqlite3_bind_double(statement_, at, value));
}

void Statement::Bind(int at, Blob blob) {
  if (!statement_) return;
  Check(sqlite3_bind_blob64(statement_, at, blob.bytes.data() ? blob.bytes.data() : "",
                            blob.bytes.size(), SQLITE_STATIC));
}

void Statement::Bind(int at, Null) {
  if (statement_) Check(sqlite3_bind_null(statement_, at));
}

// --- Connection ---

absl::StatusOr<std::unique_ptr<Connection>> Connection::Open(const std::string& path, Mode mode) {
  int flags = SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_PRIVATECACHE;
  std::string name = path;
  switch (mode) {
    case Mode::kImmutable:
      flags |= SQLITE_OPEN_READONLY | SQLITE_OPEN_URI;
      name = absl::StrCat(
          "file:", absl::StrReplaceAll(path, {{"%", "%25"}, {"?", "%3f"}, {"#", "%23"}}),
          "?immutable=1");
      break;
    case Mode::kReadOnly:
      flags |= SQLITE_OPEN_READONLY;
      break;
    case Mode::kReadWrite:
      flags |= SQLITE_OPEN_READWRITE;
      break;
    case Mode::kCreate:
      flags |= SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE;
      break;
  }
  sqlite3* db = nullptr;
  const int result = sqlite3_open_v2(name.c_str(), &db, flags, nullptr);
  std::unique_ptr<Connection> connection(new Connection(db));
  if (result != SQLITE_OK) return SqliteStatus(db, result, absl::StrCat("open ", path));
  sqlite3_extended_result_codes(db, 1);
  // Locks are held for a moment only (recovery after a crash, another program's shell); nobody
  // should see them.
  sqlite3_busy_timeout(db, 5000);
  return connection;
}

Connection::~Connection() {
  for (auto& [sql, statement] : statements_) sqlite3_finalize(statement);
  sqlite3_close_v2(db_);
}

Statement Connection::Prepare(const char* sql) {
  sqlite3_stmt*& statement = statements_[sql];
  if (!statement) {
    const int result =
        sqlite3_prepare_v3(db_, sql, -1, SQLITE_PREPARE_PERSISTENT, &statement, nullptr);
    if (result != SQLITE_OK) return Statement(db_, nullptr, SqliteStatus(db_, result, sql));
  }
  return Statement(db_, statement, absl::OkStatus());
}

absl::Status Connection::Script(const std::string& sql) {
  const int result = sqlite3_exec(db_, sql.c_str(), nullptr, nullptr, nullptr);
  return SqliteStatus(db_, result, absl::string_view(sql).substr(0, 80));
}

int64_t Connection::last_id() const { return sqlite3_last_insert_rowid(db_); }
int64_t Connection::changed() const { return sqlite3_changes64(db_); }
bool Connection::in_transaction() const { return sqlite3_get_autocommit(db_) == 0; }

}  // namespace kiln::db
