// SPDX-License-Identifier: Apache-2.0
// SHA-256 (FIPS 180-4), for artifact digests. The rest of Kiln takes OpenSSL's; the runtime is what
// people link into their own programs, and it must bring no library along, so it has these hundred
// lines, tested against OpenSSL.
#pragma once

#include <cstddef>
#include <string>

namespace kiln::runtime {

// 64 lower-case hex digits.
std::string Sha256Hex(const void* bytes, size_t size);

}  // namespace kiln::runtime
