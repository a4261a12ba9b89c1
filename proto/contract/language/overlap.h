// SPDX-License-Identifier: Apache-2.0
// Do two elements of a strided tensor share memory? Decided exactly for all strides that occur.
#pragma once

#include <cstdint>
#include <vector>

namespace kiln::language {

enum class Overlap {
  kNo,
  kYes,
  kUnknown
};  // kUnknown: the search was given up (adversarial strides only)

// Extents and strides (>= 0) in elements, one per axis.
Overlap FindOverlap(const std::vector<int64_t>& extents, const std::vector<int64_t>& strides);

}  // namespace kiln::language
