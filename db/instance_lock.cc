// SPDX-License-Identifier: Apache-2.0
#include "db/instance_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "db/file_system.h"
#include "proto/contract/error.h"

namespace kiln::db {
namespace {

std::string HostName() {
  char name[256] = "";
  gethostname(name, sizeof name - 1);
  return name;
}

// What the owner wrote: lines NAME=VALUE.
std::map<std::string, std::string> ReadOwner(int file) {
  char text[1024];
  const ssize_t size = pread(file, text, sizeof text, 0);
  std::map<std::string, std::string> owner;
  for (absl::string_view line :
       absl::StrSplit(absl::string_view(text, size > 0 ? size : 0), '\n', absl::SkipEmpty())) {
    owner.insert(absl::StrSplit(line, absl::MaxSplits('=', 1)));
  }
  return owner;
}

absl::Status InUse(const std::string& database_path, int file) {
  std::map<std::string, std::string> who = ReadOwner(file);
  return MakeError(
      absl::StatusCode::kFailedPrecondition,
      absl::StrCat("database ", database_path, " is in use by ", who["address"], " (pid ",
                   who["pid"], " on ", who["host"],
                   "): one server owns a database; stop that one or name another file"),
      {"DATABASE_IN_USE",
       {{"path", database_path},
        {"owner", who["address"]},
        {"pid", who["pid"]},
        {"host", who["host"]}}});
}

}  // namespace

absl::StatusOr<InstanceLock> InstanceLock::AcquireShared(const std::string& database_path) {
  const std::string path = absl::StrCat(database_path, ".lock");
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  InstanceLock lock(file);
  if (file < 0) return lock;
  // A file system without locks has no owner that this could miss.
  if (flock(file, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
    return InUse(database_path, file);
  }
  return lock;
}

absl::StatusOr<InstanceLock> InstanceLock::Acquire(const std::string& database_path,
                                                   absl::string_view owner) {
  const std::string path = absl::StrCat(database_path, ".lock");
  const int file = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (file < 0) return FileStatus(errno, "open", path);
  InstanceLock lock(file);
  if (flock(file, LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) return FileStatus(errno, "lock", path);
    return InUse(database_path, file);
  }
  const std::string text =
      absl::StrCat("pid=", getpid(), "\nhost=", HostName(), "\naddress=", owner, "\n");
  if (ftruncate(file, 0) != 0 ||
      pwrite(file, text.data(), text.size(), 0) != static_cast<ssize_t>(text.size())) {
    return FileStatus(errno, "write", path);
  }
  return lock;
}

// The file stays: removing it would let a third process lock a new one while a second holds the
// old.
InstanceLock::~InstanceLock() {
  if (file_ >= 0) close(file_);
}

}  // namespace kiln::db
