// SPDX-License-Identifier: Apache-2.0
#include "db/checksum.h"

#include <openssl/evp.h>

namespace kiln::db {

RowDigest& RowDigest::Add(absl::string_view field) {
  Add(static_cast<int64_t>(field.size()));
  content_.append(field.data(), field.size());
  return *this;
}

RowDigest& RowDigest::Add(int64_t field) {
  // Little-endian whatever the host is: a file may be carried to another.
  char bytes[8];
  for (int i = 0; i < 8; ++i) bytes[i] = static_cast<char>(static_cast<uint64_t>(field) >> (8 * i));
  content_.append(bytes, sizeof bytes);
  return *this;
}

int64_t RowDigest::Sum() const {
  // Fetched once: asking OpenSSL for the algorithm by name costs as much as hashing a row.
  static const EVP_MD* const sha256 = EVP_MD_fetch(nullptr, "SHA256", nullptr);
  struct Context {
    EVP_MD_CTX* handle = EVP_MD_CTX_new();
    ~Context() { EVP_MD_CTX_free(handle); }
  };
  static thread_local Context context;
  unsigned char digest[EVP_MAX_MD_SIZE];
  EVP_DigestInit_ex(context.handle, sha256, nullptr);
  EVP_DigestUpdate(context.handle, content_.data(), content_.size());
  EVP_DigestFinal_ex(context.handle, digest, nullptr);
  uint64_t sum = 0;
  for (int i = 0; i < 8; ++i) sum |= static_cast<uint64_t>(digest[i]) << (8 * i);
  return static_cast<int64_t>(sum);
}

}  // namespace kiln::db
