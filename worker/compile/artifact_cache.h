// SPDX-License-Identifier: Apache-2.0
// Compiled artifacts by what they were compiled from, in a directory of bounded size that several
// workers may share. May be emptied at any time. A file is written to a temporary name, synced and
// renamed, and carries its own digest: a torn or changed one is a miss and is removed. Thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace kiln::worker {

class ArtifactCache {
 public:
  // FAILED_PRECONDITION (CACHE_NOT_WRITABLE): the directory cannot be made or written.
  static absl::StatusOr<ArtifactCache> Open(const std::string& directory, int64_t limit_bytes);

  // Identity of a compilation: who compiles, how, what.
  static std::string Key(absl::string_view compiler, const std::vector<std::string>& flags,
                         absl::string_view source);

  std::optional<std::string> Find(const std::string& key) const;
  // Removes the entries that were used longest ago if the directory would pass its limit. A cache
  // that cannot take the entry (a full disk) goes without: the errors say why.
  absl::Status Insert(const std::string& key, absl::string_view bytes) const;

 private:
  ArtifactCache(std::string directory, int64_t limit_bytes)
      : directory_(std::move(directory)), limit_bytes_(limit_bytes) {}
  void Trim(int64_t incoming_bytes) const;

  std::string directory_;
  int64_t limit_bytes_;
};

}  // namespace kiln::worker
