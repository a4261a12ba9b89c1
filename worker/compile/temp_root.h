// SPDX-License-Identifier: Apache-2.0
// The folder that holds all temporary files of one worker, and the folders in it. Removed with the
// object; by a supervisor if the worker is killed; and by the next worker on this machine if both
// were (Make sweeps what has no owner).
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace kiln::worker {

class TempRoot {
 public:
  // Makes "kiln-worker-PID-HEX" in `directory`, after removing those of dead workers of this user.
  // FAILED_PRECONDITION: the directory is missing, not a directory or not writable
  // (TEMP_NOT_WRITABLE), or has less than `free_bytes` left (TEMP_NO_SPACE).
  static absl::StatusOr<std::unique_ptr<TempRoot>> Make(const std::string& directory,
                                                        int64_t free_bytes);
  ~TempRoot();
  TempRoot(const TempRoot&) = delete;
  TempRoot& operator=(const TempRoot&) = delete;

  const std::string& path() const { return path_; }

 private:
  TempRoot(std::string path, int owner) : path_(std::move(path)), owner_(owner) {}
  std::string path_;
  int owner_;  // locked for as long as this worker lives
};

// A folder in a root, gone with the object.
class TempFolder {
 public:
  static absl::StatusOr<TempFolder> Make(const TempRoot& root);
  ~TempFolder();
  TempFolder(TempFolder&& other) noexcept : path_(std::move(other.path_)) { other.path_.clear(); }
  TempFolder& operator=(TempFolder&&) = delete;

  const std::string& path() const { return path_; }

 private:
  explicit TempFolder(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

// Whole files, for what lives in such folders. UNAVAILABLE with the path and the reason of the
// system; a full disk is RESOURCE_EXHAUSTED.
absl::StatusOr<std::string> LoadFile(const std::string& path, int64_t limit_bytes);
absl::Status SaveFile(const std::string& path, absl::string_view bytes, bool durable);

}  // namespace kiln::worker
