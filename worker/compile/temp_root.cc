// SPDX-License-Identifier: Apache-2.0
#include "worker/compile/temp_root.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "proto/contract/error.h"

namespace kiln::worker {
namespace {

constexpr char kPrefix[] = "kiln-worker-";

void RemoveTree(const std::string& path) {
  std::error_code ignored;
  std::filesystem::remove_all(path, ignored);
}

// The owner holds a lock on the file "owner", which tells across process namespaces too (containers
// that share /tmp); a folder whose owner has not come so far is judged by the process id in its
// name.
bool Abandoned(const std::string& path, absl::string_view name) {
  const int owner = open(absl::StrCat(path, "/owner").c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW);
  if (owner >= 0) {
    const bool free = flock(owner, LOCK_EX | LOCK_NB) == 0;
    close(owner);
    return free;
  }
  int pid = 0;
  const std::pair<absl::string_view, absl::string_view> parts =
      absl::StrSplit(name.substr(strlen(kPrefix)), absl::MaxSplits('-', 1));
  return absl::SimpleAtoi(parts.first, &pid) && pid > 0 && kill(pid, 0) != 0 && errno == ESRCH;
}

void Sweep(const std::string& directory) {
  DIR* entries = opendir(directory.c_str());
  if (entries == nullptr) return;
  while (const dirent* entry = readdir(entries)) {
    if (!absl::StartsWith(entry->d_name, kPrefix)) continue;
    const std::string path = absl::StrCat(directory, "/", entry->d_name);
    struct stat facts;
    if (lstat(path.c_str(), &facts) != 0 || !S_ISDIR(facts.st_mode) || facts.st_uid != geteuid())
      continue;
    if (Abandoned(path, entry->d_name)) RemoveTree(path);
  }
  closedir(entries);
}

absl::Status Refuse(absl::string_view reason, const std::string& directory,
                    absl::string_view what) {
  return MakeError(absl::StatusCode::kFailedPrecondition,
                   absl::StrCat("temporary directory ", directory, ": ", what,
                                "; name another with --temp-dir or TMPDIR"),
                   {std::string(reason), {{"field", "temp-dir"}, {"value", directory}}});
}

absl::Status FileError(const std::string& path, absl::string_view what) {
  const std::string text = absl::StrCat("cannot ", what, " ", path, ": ", strerror(errno));
  if (errno == ENOSPC || errno == EDQUOT) return absl::ResourceExhaustedError(text);
  return absl::UnavailableError(text);
}

}  // namespace

absl::StatusOr<std::unique_ptr<TempRoot>> TempRoot::Make(const std::string& directory,
                                                         int64_t free_bytes) {
  struct statvfs space;
  if (statvfs(directory.c_str(), &space) != 0)
    return Refuse("TEMP_NOT_WRITABLE", directory, strerror(errno));
  Sweep(directory);
  const int64_t free = static_cast<int64_t>(space.f_bavail) * static_cast<int64_t>(space.f_frsize);
  if (free < free_bytes) {
    return Refuse(
        "TEMP_NO_SPACE", directory,
        absl::StrCat(free >> 20, " MiB are free, at least ", free_bytes >> 20, " MiB are needed"));
  }
  std::string path = absl::StrCat(directory, "/", kPrefix, getpid(), "-XXXXXX");
  if (mkdtemp(path.data()) == nullptr)
    return Refuse("TEMP_NOT_WRITABLE", directory, strerror(errno));
  const int owner = open(absl::StrCat(path, "/owner").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (owner < 0 || flock(owner, LOCK_EX | LOCK_NB) != 0) {
    const std::string why = strerror(errno);
    if (owner >= 0) close(owner);
    RemoveTree(path);
    return Refuse("TEMP_NOT_WRITABLE", directory, why);
  }
  return std::unique_ptr<TempRoot>(new TempRoot(std::move(path), owner));
}

TempRoot::~TempRoot() {
  RemoveTree(path_);
  close(owner_);
}

absl::StatusOr<TempFolder> TempFolder::Make(const TempRoot& root) {
  std::string path = absl::StrCat(root.path(), "/XXXXXX");
  if (mkdtemp(path.data()) == nullptr) return FileError(path, "make");
  return TempFolder(std::move(path));
}

TempFolder::~TempFolder() {
  if (!path_.empty()) RemoveTree(path_);
}

absl::StatusOr<std::string> LoadFile(const std::string& path, int64_t limit_bytes) {
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return FileError(path, "open");
  std::string bytes;
  char block[1 << 16];
  ssize_t got;
  while ((got = read(file, block, sizeof block)) > 0 &&
         static_cast<int64_t>(bytes.size()) <= limit_bytes) {
    bytes.append(block, got);
  }
  const int error = errno;
  close(file);
  errno = error;
  if (got < 0) return FileError(path, "read");
  if (static_cast<int64_t>(bytes.size()) > limit_bytes) bytes.resize(limit_bytes);
  return bytes;
}

absl::Status SaveFile(const std::string& path, absl::string_view bytes, bool durable) {
  const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (file < 0) return FileError(path, "make");
  absl::Status status;
  while (!bytes.empty() && status.ok()) {
    const ssize_t put = write(file, bytes.data(), bytes.size());
    if (put < 0 && errno != EINTR) status = FileError(path, "write");
    if (put > 0) bytes.remove_prefix(put);
  }
  if (status.ok() && durable && fsync(file) != 0) status = FileError(path, "sync");
  if (close(file) != 0 && status.ok()) status = FileError(path, "close");
  return status;
}

}  // namespace kiln::worker
