// SPDX-License-Identifier: Apache-2.0
// Store on one SQLite file on a local disk, owned by one process.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "db/store.h"

namespace kiln::db {

struct SqliteOptions {
  std::string path;
  std::string owner;    // shown to a second server that is refused: the listening address
  bool upgrade = true;  // migrate an older file, after a backup beside it
  bool allow_network_fs = false;
  int max_readers = 16;
  // A file that nobody writes, wherever it lies: a read-only mount or image layer, a network file
  // system, another owner's file. Neither a lock nor a log is made beside it. Reads work, writes
  // are FAILED_PRECONDITION (DATABASE_READ_ONLY).
  bool read_only = false;
};

// Opens or creates. FAILED_PRECONDITION: another process owns it (reason DATABASE_IN_USE; details
// "owner", "pid"), the file is newer than this binary (DATABASE_NEWER), damaged or not Kiln's
// (DATABASE_DAMAGED), on a network file system (NETWORK_FILE_SYSTEM), the directory or file is not
// writable (DATABASE_READ_ONLY). With `read_only` also: it is not there (DATABASE_MISSING), older
// than this binary (DATABASE_OLDER), or has a log beside it (DATABASE_HAS_LOG). UNAVAILABLE: the
// disk is full or fails. In each case the file is as it was.
absl::StatusOr<std::unique_ptr<Store>> OpenSqliteStore(const SqliteOptions& options);

}  // namespace kiln::db
