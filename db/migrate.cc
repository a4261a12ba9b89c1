// SPDX-License-Identifier: Apache-2.0
#include "db/migrate.h"

#include <fcntl.h>
#include <sqlite3.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "db/file_system.h"
#include "proto/contract/error.h"

namespace kiln::db {
namespace {

absl::Status SyncFile(const std::string& path, int flags) {
  const int file = open(path.c_str(), flags | O_CLOEXEC);
  if (file < 0) return FileStatus(errno, "open", path);
  const int result = fsync(file);
  const int error = errno;
  close(file);
  return result == 0 ? absl::OkStatus() : FileStatus(error, "sync", path);
}

absl::Status CheckCopy(const std::string& path) {
  KILN_ASSIGN_OR_RETURN(auto copy, Connection::Open(path, Connection::Mode::kReadOnly));
  Statement check = copy->Query("PRAGMA quick_check(1)");
  KILN_ASSIGN_OR_RETURN(const bool row, check.Step());
  if (row && check.Text(0) == "ok") return absl::OkStatus();
  return MakeError(absl::StatusCode::kDataLoss, absl::StrCat("the backup ", path, " is damaged"),
                   {"BACKUP_DAMAGED", {{"path", path}}});
}

// Beside the file.
absl::Status Backup(Connection& connection, const std::string& path, int64_t version) {
  const std::string time = absl::FormatTime("%Y%m%dT%H%M%E6SZ", absl::Now(), absl::UTCTimeZone());
  return Annotate(CopyDatabase(connection, absl::StrCat(path, ".v", version, "-", time, ".backup")),
                  "back up before the upgrade");
}

absl::Status RunStep(Connection& connection, const Migration& migration) {
  KILN_RETURN_IF_ERROR(connection.Script("BEGIN IMMEDIATE"));
  absl::Status status = connection.Script(migration.sql);
  if (status.ok()) {
    status = connection.Script(absl::StrCat("PRAGMA user_version = ", migration.version));
  }
  if (status.ok()) status = Verify(connection, migration);
  if (status.ok()) status = connection.Script("COMMIT");
  if (!status.ok() && connection.in_transaction()) connection.Script("ROLLBACK").IgnoreError();
  return Annotate(status, absl::StrCat("migrate to ", migration.name));
}

}  // namespace

absl::Status CopyDatabase(Connection& connection, const std::string& to) {
  if (access(to.c_str(), F_OK) == 0) {
    return MakeError(absl::StatusCode::kAlreadyExists,
                     absl::StrCat(to, " is there already and is not overwritten"),
                     {"FILE_EXISTS", {{"path", to}}});
  }
  const std::string partial = absl::StrCat(to, ".partial");
  absl::Status status = connection.Run("VACUUM INTO ?", partial);
  if (status.ok()) status = CheckCopy(partial);
  if (status.ok()) status = SyncFile(partial, O_RDONLY);
  if (status.ok() && rename(partial.c_str(), to.c_str()) != 0) {
    status = FileStatus(errno, "rename", partial);
  }
  if (!status.ok()) {
    unlink(partial.c_str());
    return status;
  }
  return SyncFile(DirectoryOf(to), O_RDONLY | O_DIRECTORY);
}

absl::Status WrongVersion(const std::string& path, int64_t version, int known) {
  return MakeError(
      absl::StatusCode::kFailedPrecondition,
      absl::StrCat("database ", path, " has schema version ", version, ", this Kiln has ", known,
                   version > known ? ": use the Kiln that wrote it"
                                   : ": allow the upgrade, which makes a backup beside it first"),
      {version > known ? "DATABASE_NEWER" : "DATABASE_OLDER",
       {{"path", path}, {"version", absl::StrCat(version)}, {"known", absl::StrCat(known)}}});
}

absl::Status Verify(Connection& connection, const Migration& migration) {
  const char* sql = migration.verify;
  while (*sql) {
    sqlite3_stmt* statement = nullptr;
    const int result = sqlite3_prepare_v2(connection.handle(), sql, -1, &statement, &sql);
    if (result != SQLITE_OK) return SqliteStatus(connection.handle(), result, migration.name);
    if (!statement) continue;  // blanks and comments
    const bool holds =
        sqlite3_step(statement) == SQLITE_ROW && sqlite3_column_int64(statement, 0) == 1;
    const std::string query = sqlite3_sql(statement);
    sqlite3_finalize(statement);
    if (!holds) return absl::InternalError(absl::StrCat("verification fails: ", query));
  }
  return absl::OkStatus();
}

absl::Status Migrate(Connection& connection, const std::string& path, bool upgrade,
                     const std::vector<Migration>& migrations) {
  KILN_ASSIGN_OR_RETURN(const int64_t version, connection.QueryInteger("PRAGMA user_version"));
  const int known = migrations.empty() ? 0 : migrations.back().version;
  if (version > known) {
    return WrongVersion(path, version, known);
  }
  if (version == known) return absl::OkStatus();
  if (version > 0) {
    if (!upgrade) {
      return WrongVersion(path, version, known);
    }
    KILN_RETURN_IF_ERROR(Backup(connection, path, version));
  }
  for (const Migration& migration : migrations) {
    if (migration.version > version) KILN_RETURN_IF_ERROR(RunStep(connection, migration));
  }
  return absl::OkStatus();
}

}  // namespace kiln::db
