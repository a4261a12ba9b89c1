// SPDX-License-Identifier: Apache-2.0
#include "client/cli/whole_file.h"

#include <filesystem>
#include <fstream>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "proto/contract/error.h"

namespace kiln::cli {

absl::StatusOr<std::string> ReadWholeFile(const std::string& field, const std::string& path,
                                          const std::string& kind, int64_t limit_bytes) {
  std::error_code error;
  // Directories open like files and devices have no end: neither is read.
  if (!std::filesystem::is_regular_file(path, error))
    return InvalidField("NO_SUCH_FILE", field, path, "no file that can be read", kind);
  const auto size = static_cast<int64_t>(std::filesystem::file_size(path, error));
  if (!error && size > limit_bytes) {
    return InvalidField("FILE_TOO_LARGE", field, path, absl::StrCat(size, " bytes long"),
                        absl::StrCat("at most ", limit_bytes, " bytes"));
  }
  std::ifstream file(path, std::ios::binary);
  std::string bytes(static_cast<size_t>(error ? 0 : size), '\0');
  if (file) file.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  if (error || !file || file.gcount() != static_cast<std::streamsize>(bytes.size()))
    return InvalidField("NO_SUCH_FILE", field, path, "no file that can be read", kind);
  return bytes;
}

}  // namespace kiln::cli
