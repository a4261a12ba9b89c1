// SPDX-License-Identifier: Apache-2.0
// The checksum that rows carry. Pure, thread-safe.
#pragma once

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

namespace kiln::db {

// Collects a row's fields in an agreed order, each with its length, so that no two rows have equal
// input.
class RowDigest {
 public:
  RowDigest& Add(absl::string_view field);
  RowDigest& Add(int64_t field);
  // The first 8 bytes of SHA-256 over what was added.
  int64_t Sum() const;

 private:
  std::string content_;
};

}  // namespace kiln::db
