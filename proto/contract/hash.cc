// SPDX-License-Identifier: Apache-2.0
#include <openssl/evp.h>

#include <string>

#include "absl/strings/escaping.h"
#include "proto/contract/workload.h"

namespace kiln {

std::string Sha256Hex(absl::string_view bytes) {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned int size = 0;
  // Fetched once: asking OpenSSL for the algorithm by name costs as much as hashing a kilobyte.
  static const EVP_MD* const sha256 = EVP_MD_fetch(nullptr, "SHA256", nullptr);
  EVP_Digest(bytes.data(), bytes.size(), digest, &size, sha256, nullptr);
  return absl::BytesToHexString(absl::string_view(reinterpret_cast<const char*>(digest), size));
}

}  // namespace kiln
