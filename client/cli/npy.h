// SPDX-License-Identifier: Apache-2.0
// Tensors in NumPy's .npy files: C order, little-endian, versions 1 to 3. Storage types that NumPy
// lacks travel as what holds their bits (bf16 as u2, fp8 as u1) or their values (i4 as i1, u4 as
// u1).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "proto/contract/dtype.h"
#include "worker/compiler/analysis/host_tensor.h"

namespace kiln::cli {

struct NpyArray {
  std::string descr;  // "<f4", "|u1", ...
  std::vector<int64_t> shape;
  std::string bytes;
};

// INVALID_ARGUMENT says what is wrong with the bytes.
absl::StatusOr<NpyArray> ParseNpy(const std::string& file);
std::string PrintNpy(const NpyArray& array);

// What a tensor of this type has in a file.
std::string NpyDescr(DType type);

// Puts the array's elements into `tensor`, whose type, shape, strides and memory are given.
// INVALID_ARGUMENT: another shape or type, or an i4 that is none.
absl::Status FillTensor(const NpyArray& array, compiler::HostTensor* tensor);
NpyArray ToNpy(const compiler::HostTensor& tensor);

// The same with files; the errors name the path.
absl::Status LoadTensor(const std::string& path, compiler::HostTensor* tensor);
absl::Status SaveTensor(const std::string& path, const compiler::HostTensor& tensor);

}  // namespace kiln::cli
