// SPDX-License-Identifier: Apache-2.0
#include "client/runtime/sha256.h"

#include <gtest/gtest.h>
#include <openssl/evp.h>

#include <random>
#include <string>

namespace kiln::runtime {
namespace {

std::string OpensslSha256Hex(const std::string& bytes) {
  unsigned char digest[32];
  unsigned int size = 0;
  EXPECT_EQ(EVP_Digest(bytes.data(), bytes.size(), digest, &size, EVP_sha256(), nullptr), 1);
  std::string hex;
  for (const unsigned char byte : digest) {
    hex += "0123456789abcdef"[byte >> 4];
    hex += "0123456789abcdef"[byte & 15];
  }
  return hex;
}

TEST(Sha256, GivesThePublishedDigests) {
  EXPECT_EQ(Sha256Hex("", 0), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(Sha256Hex("abc", 3),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

// All lengths around the block and padding borders, and one of some megabytes.
TEST(Sha256, AgreesWithOpenssl) {
  std::mt19937 random(1);
  std::string bytes;
  for (int size = 0; size < 300; ++size) {
    EXPECT_EQ(Sha256Hex(bytes.data(), bytes.size()), OpensslSha256Hex(bytes)) << size;
    bytes += static_cast<char>(random());
  }
  bytes.resize(3'000'001, 'k');
  EXPECT_EQ(Sha256Hex(bytes.data(), bytes.size()), OpensslSha256Hex(bytes));
}

}  // namespace
}  // namespace kiln::runtime
