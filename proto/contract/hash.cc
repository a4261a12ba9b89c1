// SPDX-License-Identifier: Apache-2.0
#include <openssl/evp.h>

#include <string>

#include "absl/strings/escaping.h"
#include "proto/contract/workload.h"

namespace kiln {

std::string Sha256Hex(absl::string_view bytes) {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned int size = 0;
  EVP_Digest(bytes.data(), bytes.size(), digest, &size, EVP_sha256(), nullptr);
  return absl::BytesToHexString(absl::string_view(reinterpret_cast<const char*>(digest), size));
}

}  // namespace kiln
