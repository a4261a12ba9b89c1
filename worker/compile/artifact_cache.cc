// SPDX-License-Identifier: Apache-2.0
#include "worker/compile/artifact_cache.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "proto/contract/error.h"
#include "proto/contract/workload.h"
#include "worker/compile/temp_root.h"

namespace kiln::worker {
namespace {

constexpr size_t kDigestSize = 64;
constexpr char kSuffix[] = ".so";

}  // namespace

absl::StatusOr<ArtifactCache> ArtifactCache::Open(const std::string& directory,
                                                  int64_t limit_bytes) {
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  if (error || access(directory.c_str(), W_OK | X_OK) != 0) {
    return MakeError(
        absl::StatusCode::kFailedPrecondition,
        absl::StrCat("artifact cache ", directory, ": ", error ? error.message() : strerror(errno),
                     "; name another with --cache-dir"),
        {"CACHE_NOT_WRITABLE", {{"field", "cache-dir"}, {"value", directory}}});
  }
  return ArtifactCache(directory, limit_bytes);
}

std::string ArtifactCache::Key(absl::string_view compiler, const std::vector<std::string>& flags,
                               absl::string_view source) {
  // Lengths in front keep ("ab", "c") and ("a", "bc") apart.
  std::string text =
      absl::StrCat("kiln-artifact/1\n", compiler.size(), " ", compiler, "\n", flags.size(), "\n");
  for (const std::string& flag : flags) absl::StrAppend(&text, flag.size(), " ", flag, "\n");
  absl::StrAppend(&text, source);
  return Sha256Hex(text);
}

std::optional<std::string> ArtifactCache::Find(const std::string& key) const {
  const std::string path = absl::StrCat(directory_, "/", key, kSuffix);
  absl::StatusOr<std::string> file =
      LoadFile(path, limit_bytes_ + static_cast<int64_t>(kDigestSize));
  if (!file.ok()) return std::nullopt;
  if (file->size() < kDigestSize || Sha256Hex(absl::string_view(*file).substr(kDigestSize)) !=
                                        absl::string_view(*file).substr(0, kDigestSize)) {
    unlink(path.c_str());
    return std::nullopt;
  }
  utimensat(AT_FDCWD, path.c_str(), nullptr, 0);  // used now, so that Trim takes others first
  return file->substr(kDigestSize);
}

absl::Status ArtifactCache::Insert(const std::string& key, absl::string_view bytes) const {
  static std::atomic<int> count{0};
  const std::string path = absl::StrCat(directory_, "/", key, kSuffix);
  const std::string temporary = absl::StrCat(path, ".", getpid(), ".", count.fetch_add(1), ".tmp");
  Trim(static_cast<int64_t>(bytes.size() + kDigestSize));
  absl::Status status =
      SaveFile(temporary, absl::StrCat(Sha256Hex(bytes), bytes), /*durable=*/true);
  if (status.ok() && rename(temporary.c_str(), path.c_str()) != 0) {
    status = absl::UnavailableError(absl::StrCat("cannot rename to ", path, ": ", strerror(errno)));
  }
  if (!status.ok()) unlink(temporary.c_str());
  return status;
}

void ArtifactCache::Trim(int64_t incoming_bytes) const {
  struct Entry {
    std::filesystem::file_time_type used;
    int64_t bytes;
    std::filesystem::path path;
  };
  std::vector<Entry> entries;
  int64_t total = incoming_bytes;
  std::error_code error;
  const auto now = std::filesystem::file_time_type::clock::now();
  for (const auto& file : std::filesystem::directory_iterator(directory_, error)) {
    std::error_code gone;
    Entry entry{file.last_write_time(gone), static_cast<int64_t>(file.file_size(gone)),
                file.path()};
    if (gone) continue;
    const std::string name = entry.path.filename().string();
    // Left by a worker that was killed between writing and renaming.
    if (absl::EndsWith(name, ".tmp") && now - entry.used > std::chrono::hours(1))
      unlink(entry.path.c_str());
    if (!absl::EndsWith(name, kSuffix)) continue;
    total += entry.bytes;
    entries.push_back(std::move(entry));
  }
  if (total <= limit_bytes_) return;
  std::sort(entries.begin(), entries.end(),
            [](const Entry& a, const Entry& b) { return a.used < b.used; });
  for (const Entry& entry : entries) {
    if (total <= limit_bytes_) return;
    if (unlink(entry.path.c_str()) == 0) total -= entry.bytes;
  }
}

}  // namespace kiln::worker
