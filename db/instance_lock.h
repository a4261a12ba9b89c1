// SPDX-License-Identifier: Apache-2.0
// One process owns a database. The lock is the kernel's (flock on FILE.lock), so that it ends with
// its owner however that dies; the text in the file only says who it is.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace kiln::db {

class InstanceLock {
 public:
  // FAILED_PRECONDITION: DATABASE_IN_USE (details "owner", "pid", "host"), DATABASE_READ_ONLY.
  // UNAVAILABLE: the disk.
  static absl::StatusOr<InstanceLock> Acquire(const std::string& database_path,
                                              absl::string_view owner);
  // For a reader of a file that nobody may write: held beside other readers', refused as above
  // while somebody owns the file. Makes no file: where there is none, nothing is held.
  static absl::StatusOr<InstanceLock> AcquireShared(const std::string& database_path);
  InstanceLock(InstanceLock&& other) noexcept : file_(other.file_) { other.file_ = -1; }
  InstanceLock& operator=(InstanceLock&& other) = delete;
  ~InstanceLock();

 private:
  explicit InstanceLock(int file) : file_(file) {}
  int file_;
};

}  // namespace kiln::db
