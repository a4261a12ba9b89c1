// SPDX-License-Identifier: Apache-2.0
// The limits of LANGUAGE.md section 8. Each is checked in one place and has a message of its own.
#pragma once

#include <cstddef>
#include <cstdint>

namespace kiln::language {

inline constexpr size_t kMaxTextBytes = 64 * 1024;
inline constexpr int kMaxStatements = 256;
inline constexpr int kMaxNodes = 4096;  // of the graph
inline constexpr int kMaxNesting = 64;  // of expressions
inline constexpr int kMaxRank = 8;
inline constexpr int kMaxDims = 32;
inline constexpr int kMaxTensors = 64;    // declared ones and temporaries that stay
inline constexpr int kMaxVariables = 64;  // of one statement; keeps checking linear in the text
inline constexpr int64_t kMaxExtent = (int64_t{1} << 40) - 1;
inline constexpr int64_t kMaxAddressBytes = int64_t{1} << 62;

}  // namespace kiln::language
