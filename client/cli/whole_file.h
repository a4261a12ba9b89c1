// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"

namespace kiln::cli {

// The bytes of a file, `kind` of which is wanted ("a readable .npy file"). INVALID_ARGUMENT with
// reason NO_SUCH_FILE: no regular file, or one that cannot be read; FILE_TOO_LARGE: beyond
// `limit_bytes`.
absl::StatusOr<std::string> ReadWholeFile(const std::string& field, const std::string& path,
                                          const std::string& kind, int64_t limit_bytes);

}  // namespace kiln::cli
