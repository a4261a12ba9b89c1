// SPDX-License-Identifier: Apache-2.0
#include "db/open_database.h"

#include <fcntl.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "db/file_system.h"
#include "proto/contract/error.h"

namespace kiln::db {
namespace {

// Up to this size a file's structure is checked in whole at each start (a fraction of a second).
// Larger ones are checked by their header, their schema and, row by row, by the checksums.
constexpr int64_t kCheckedBytes = int64_t{256} << 20;
constexpr int kPageBytes = 8192;

absl::Status Damaged(const std::string& path, absl::string_view why) {
  return MakeError(absl::StatusCode::kFailedPrecondition,
                   absl::StrCat("database ", path, " is not usable: ", why,
                                "; it was left as it is: restore a backup or name another file"),
                   {"DATABASE_DAMAGED", {{"path", path}}});
}

int64_t FileBytes(const std::string& path) {
  struct stat found;
  return stat(path.c_str(), &found) == 0 ? found.st_size : 0;
}

uint32_t BigEndian(const unsigned char* bytes) {
  return uint32_t{bytes[0]} << 24 | bytes[1] << 16 | bytes[2] << 8 | bytes[3];
}

// Judges the first 100 bytes before SQLite touches anything: opening another program's file could
// roll back its journal.
absl::Status CheckHeader(const std::string& path, int known_version) {
  const int64_t bytes = FileBytes(path);
  if (bytes == 0) return absl::OkStatus();  // new
  unsigned char header[100];
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return FileStatus(errno, "open", path);
  const ssize_t read = pread(file, header, sizeof header, 0);
  close(file);
  if (read < 0) return FileStatus(errno, "read", path);
  if (read < static_cast<ssize_t>(sizeof header) ||
      std::memcmp(header, "SQLite format 3", 16) != 0) {
    return Damaged(path, "it is no SQLite file");
  }
  if (BigEndian(header + 68) != kApplicationId) {
    return Damaged(path, "it is a database of another program");
  }
  // The log, where there is one, may hold a newer header or the missing end: then SQLite judges.
  if (FileBytes(absl::StrCat(path, "-wal")) > 0) return absl::OkStatus();
  const int64_t version = BigEndian(header + 60);
  if (version > known_version) {
    return MakeError(
        absl::StatusCode::kFailedPrecondition,
        absl::StrCat("database ", path, " has schema version ", version, ", this Kiln has ",
                     known_version, ": use the Kiln that wrote it"),
        {"DATABASE_NEWER", {{"path", path}, {"version", absl::StrCat(version)}}});
  }
  const int page = header[16] << 8 | header[17];
  if (page < 512 || bytes % (page == 1 ? 65536 : page) != 0)
    return Damaged(path, "it is truncated");
  return absl::OkStatus();
}

// The structure, with what the log holds.
absl::Status CheckStructure(Connection& connection, const std::string& path) {
  Statement schema = connection.Query("SELECT count(*) FROM sqlite_schema");
  KILN_RETURN_IF_ERROR(schema.Step().status());
  if (FileBytes(path) > kCheckedBytes) return absl::OkStatus();
  Statement check = connection.Query("PRAGMA quick_check(1)");
  KILN_ASSIGN_OR_RETURN(const bool row, check.Step());
  if (row && check.Text(0) == "ok") return absl::OkStatus();
  return absl::DataLossError(row ? check.Text(0) : absl::string_view("no answer"));
}

absl::Status SetUp(Connection& connection, bool is_new) {
  if (is_new) {
    // Marked as Kiln's, in the file itself and not only in the log, before anything else.
    KILN_RETURN_IF_ERROR(connection.Script(absl::StrCat(
        "PRAGMA page_size = ", kPageBytes, "; PRAGMA application_id = ", kApplicationId, ";")));
  }
  {
    Statement mode = connection.Query("PRAGMA journal_mode = WAL");
    KILN_ASSIGN_OR_RETURN(const bool row, mode.Step());
    if (!row || mode.Text(0) != "wal") {
      return absl::UnavailableError("the file system does not support a write-ahead log");
    }
  }
  return connection.Script(
      "PRAGMA synchronous = FULL; PRAGMA wal_autocheckpoint = 0; PRAGMA mmap_size = 0;"
      "PRAGMA journal_size_limit = 67108864; PRAGMA cache_size = -32768; PRAGMA foreign_keys = ON;"
      "PRAGMA trusted_schema = OFF");
}

absl::StatusOr<std::unique_ptr<Connection>> OpenWriter(const SqliteOptions& options,
                                                       const std::vector<Migration>& migrations) {
  const int known = migrations.empty() ? 0 : migrations.back().version;
  KILN_RETURN_IF_ERROR(CheckHeader(options.path, known));
  const bool is_new = FileBytes(options.path) == 0;
  KILN_ASSIGN_OR_RETURN(auto connection, Connection::Open(options.path, Connection::Mode::kCreate));
  // Should anything below refuse, closing must not copy the log into the file.
  sqlite3_db_config(connection->handle(), SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, nullptr);
  absl::Status status = is_new ? absl::OkStatus() : CheckStructure(*connection, options.path);
  if (status.ok()) {
    KILN_ASSIGN_OR_RETURN(const int64_t version, connection->QueryInteger("PRAGMA user_version"));
    // The refusals of Migrate must come before the pragmas write.
    if (version > known || (version > 0 && version < known && !options.upgrade)) {
      return Migrate(*connection, options.path, options.upgrade, migrations);
    }
    status = SetUp(*connection, is_new);
  }
  if (status.ok()) status = Migrate(*connection, options.path, options.upgrade, migrations);
  if (absl::IsDataLoss(status)) return Damaged(options.path, status.message());
  if (!status.ok()) return Annotate(status, absl::StrCat("open ", options.path));
  sqlite3_db_config(connection->handle(), SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 0, nullptr);
  return connection;
}

absl::StatusOr<OwnedDatabase> OpenReadOnly(const SqliteOptions& options, int known) {
  const std::string& path = options.path;
  if (access(path.c_str(), R_OK) != 0) {
    if (errno != ENOENT) return FileStatus(errno, "open", path);
    return MakeError(absl::StatusCode::kFailedPrecondition,
                     absl::StrCat("database ", path, " is not there, and is to be read only"),
                     {"DATABASE_MISSING", {{"path", path}}});
  }
  KILN_ASSIGN_OR_RETURN(InstanceLock lock, InstanceLock::AcquireShared(path));
  // What stands in a log alone would not be seen.
  if (FileBytes(absl::StrCat(path, "-wal")) > 0) {
    return MakeError(absl::StatusCode::kFailedPrecondition,
                     absl::StrCat("database ", path, " has a log beside it (", path,
                                  "-wal) with changes: open it writable once, or export it"),
                     {"DATABASE_HAS_LOG", {{"path", path}}});
  }
  KILN_RETURN_IF_ERROR(CheckHeader(path, known));
  KILN_ASSIGN_OR_RETURN(auto connection, Connection::Open(path, Connection::Mode::kImmutable));
  absl::Status status = CheckStructure(*connection, path);
  if (absl::IsDataLoss(status)) return Damaged(path, status.message());
  KILN_RETURN_IF_ERROR(Annotate(status, absl::StrCat("open ", path)));
  KILN_ASSIGN_OR_RETURN(const int64_t version, connection->QueryInteger("PRAGMA user_version"));
  if (version != known) return WrongVersion(path, version, known);
  return OwnedDatabase{std::move(lock), std::move(connection)};
}

}  // namespace

absl::StatusOr<OwnedDatabase> OpenDatabase(const SqliteOptions& options,
                                           const std::vector<Migration>& migrations) {
  if (options.read_only) {
    return OpenReadOnly(options, migrations.empty() ? 0 : migrations.back().version);
  }
  KILN_RETURN_IF_ERROR(CheckPlace(options.path, options.allow_network_fs));
  KILN_ASSIGN_OR_RETURN(InstanceLock lock, InstanceLock::Acquire(options.path, options.owner));
  KILN_ASSIGN_OR_RETURN(auto writer, OpenWriter(options, migrations));
  return OwnedDatabase{std::move(lock), std::move(writer)};
}

}  // namespace kiln::db
