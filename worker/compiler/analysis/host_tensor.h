// SPDX-License-Identifier: Apache-2.0
// A tensor's value in host memory, as the interpreter, the reference and the verifier see it: the bytes from its base
// pointer on, its type and layout. Plain data.
#pragma once

#include <cstdint>
#include <vector>

#include "proto/contract/dtype.h"

namespace kiln::compiler {

struct HostTensor {
  DType type = DType::kF32;
  std::vector<int64_t> shape;
  std::vector<int64_t> strides;   // in elements
  std::vector<uint8_t> bytes;     // span; i4/u4: two per byte, low nibble first

  int64_t elements() const;       // product of shape
};

// Exact conversions between a stored element and f64 (rounding as LANGUAGE.md section 5 on the way in; fp8 saturates).
double LoadAsDouble(const HostTensor& tensor, int64_t offset_elements);
int64_t LoadAsInteger(const HostTensor& tensor, int64_t offset_elements);
void StoreDouble(HostTensor& tensor, int64_t offset_elements, double value);
void StoreInteger(HostTensor& tensor, int64_t offset_elements, int64_t value);

// value rounded to the storage type and back.
double RoundTo(DType type, double value);

}  // namespace kiln::compiler
