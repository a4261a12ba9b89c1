// SPDX-License-Identifier: Apache-2.0
// A tensor's value in host memory, as the interpreter, the reference and the verifier see it: the
// bytes from its base pointer on, its type and layout. Plain data.
#pragma once

#include <cstdint>
#include <vector>

#include "proto/contract/dtype.h"
#include "proto/contract/graph.h"

namespace kiln::compiler {

struct HostTensor {
  DType type = DType::kF32;
  std::vector<int64_t> shape;
  std::vector<int64_t> strides;  // in elements
  std::vector<uint8_t> bytes;    // span; i4/u4: two per byte, low nibble first

  int64_t elements() const;  // product of shape
};

// Exact conversions between a stored element and f64 (rounding as LANGUAGE.md section 5 on the way
// in: to nearest even; e4m3 saturates, the other floats overflow to infinity; floats truncate and
// saturate to integers).
double LoadAsDouble(const HostTensor& tensor, int64_t offset_elements);
int64_t LoadAsInteger(const HostTensor& tensor, int64_t offset_elements);
void StoreDouble(HostTensor& tensor, int64_t offset_elements, double value);
void StoreInteger(HostTensor& tensor, int64_t offset_elements, int64_t value);

// value rounded to the storage type and back.
double RoundTo(DType type, double value);

// Of integer types and bool.
struct IntegerLimits {
  int64_t least, greatest;
};
IntegerLimits LimitsOf(DType type);
int64_t TruncateTo(DType type, double value);  // truncates and saturates; NaN gives 0
int64_t WrapTo(DType type, int64_t value);     // keeps the low bits; bool: is it not 0

// A tensor of a static graph with its span filled with one byte.
HostTensor MakeHostTensor(const Graph& graph, const Tensor& tensor, uint8_t fill);

}  // namespace kiln::compiler
