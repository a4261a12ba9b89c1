// SPDX-License-Identifier: Apache-2.0
// What a database file's place must be: an existing, writable directory on a local disk. Looks,
// never writes.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace kiln::db {

// FAILED_PRECONDITION: DIRECTORY_MISSING, NETWORK_FILE_SYSTEM, DATABASE_READ_ONLY. UNAVAILABLE: the
// disk.
absl::Status CheckPlace(const std::string& database_path, bool allow_network_fs);

// The name of a file system, by the magic number of statfs(2), that cannot be trusted with SQLite's
// locks and shared memory because another machine may serve it; empty for a local one.
absl::string_view NetworkFileSystem(int64_t magic);

// An errno as a status: FAILED_PRECONDITION DATABASE_READ_ONLY, or UNAVAILABLE DISK_FULL or
// DISK_FAILED.
absl::Status FileStatus(int error, absl::string_view doing, const std::string& path);

std::string DirectoryOf(const std::string& path);

}  // namespace kiln::db
