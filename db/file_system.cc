// SPDX-License-Identifier: Apache-2.0
#include "db/file_system.h"

#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "proto/contract/error.h"

namespace kiln::db {

absl::Status FileStatus(int error, absl::string_view doing, const std::string& path) {
  const std::string message = absl::StrCat(doing, " ", path, ": ", strerror(error));
  const ErrorInfo info{"DISK_FAILED", {{"path", path}}};
  switch (error) {
    case EACCES:
    case EPERM:
    case EROFS:
      return MakeError(absl::StatusCode::kFailedPrecondition,
                       absl::StrCat(message, "; a database and its directory must be writable"),
                       {"DATABASE_READ_ONLY", info.details});
    case ENOSPC:
    case EDQUOT:
      return MakeError(absl::StatusCode::kUnavailable, message, {"DISK_FULL", info.details});
    default:
      return MakeError(absl::StatusCode::kUnavailable, message, info);
  }
}

std::string DirectoryOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

absl::string_view NetworkFileSystem(int64_t magic) {
  struct Known {
    uint32_t magic;
    const char* name;
  };
  constexpr Known kKnown[] = {
      {0x6969, "NFS"},        {0x517b, "SMB"},      {0xff534d42, "CIFS"},  {0xfe534d42, "SMB2"},
      {0x0bd00bd0, "Lustre"}, {0x65735546, "FUSE"}, {0x01021997, "9p"},    {0x5346414f, "AFS"},
      {0x6b414653, "AFS"},    {0x00c36400, "Ceph"}, {0x47504653, "GPFS"},  {0x7461636f, "OCFS2"},
      {0x19830326, "BeeGFS"}, {0x01161970, "GFS2"}, {0x73757245, "Coda"},  {0x20030528, "OrangeFS"},
      {0x786f4256, "vboxsf"}, {0x564c, "NCP"},      {0xaad7aaea, "PanFS"}, {0x6a656a63, "virtiofs"},
  };
  for (const Known& known : kKnown) {
    // statfs keeps the number in a signed or a wider word, by architecture.
    if (known.magic == static_cast<uint32_t>(magic)) return known.name;
  }
  return "";
}

absl::Status CheckPlace(const std::string& database_path, bool allow_network_fs) {
  const std::string directory = DirectoryOf(database_path);
  struct stat found;
  if (stat(directory.c_str(), &found) != 0 || !S_ISDIR(found.st_mode)) {
    return MakeError(
        absl::StatusCode::kFailedPrecondition,
        absl::StrCat("database ", database_path, ": there is no directory ", directory),
        {"DIRECTORY_MISSING", {{"path", directory}}});
  }
  struct statfs where;
  if (statfs(directory.c_str(), &where) != 0) return FileStatus(errno, "statfs", directory);
  const absl::string_view network = NetworkFileSystem(where.f_type);
  if (!network.empty() && !allow_network_fs) {
    return MakeError(
        absl::StatusCode::kFailedPrecondition,
        absl::StrCat("database ", database_path, " lies on ", network,
                     ": its locks and shared memory are not to be trusted; use a local disk"),
        {"NETWORK_FILE_SYSTEM", {{"path", database_path}, {"file_system", std::string(network)}}});
  }
  if (access(directory.c_str(), W_OK | X_OK) != 0) return FileStatus(errno, "use", directory);
  if (stat(database_path.c_str(), &found) != 0) {
    return errno == ENOENT ? absl::OkStatus() : FileStatus(errno, "stat", database_path);
  }
  if (!S_ISREG(found.st_mode)) {
    return MakeError(absl::StatusCode::kFailedPrecondition,
                     absl::StrCat("database ", database_path, " is not a regular file"),
                     {"DATABASE_DAMAGED", {{"path", database_path}}});
  }
  if (access(database_path.c_str(), R_OK | W_OK) != 0) {
    return FileStatus(errno, "open", database_path);
  }
  return absl::OkStatus();
}

}  // namespace kiln::db
