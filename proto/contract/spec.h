// SPDX-License-Identifier: Apache-2.0
// What a client says of a workload: the text of a program, and what binds it. Plain data,
// unchecked; CheckWorkload (workload.h) checks it. Everything here but names and text layout is
// part of the signature.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "proto/contract/dtype.h"

namespace kiln {

struct DimBinding {
  int64_t lo = 0;  // both ends included; lo == hi: a static dim
  int64_t hi = 0;
  bool is_static() const { return lo == hi; }
  bool operator==(const DimBinding&) const = default;
};

// Strict in all by default (LANGUAGE.md section 5).
struct Policy {
  std::map<std::string, DType> accumulate;  // output name -> narrower accumulator
  bool tf32 = false;
  bool finite_only = false;
  bool approximate = false;
  bool fixed_order = false;  // order=fixed
  bool library = true;       // library=no clears it
  bool operator==(const Policy&) const = default;
};

struct WorkloadSpec {
  std::string program;  // one `operator`
  std::map<std::string, DimBinding> dims;
  std::map<std::string, DType> types;  // tensors that the program declares without a type
  std::map<std::string, std::vector<int64_t>> strides;  // in elements
  std::map<std::string, int64_t> alignment;  // of the base pointer, in bytes; 16 where absent
  std::map<std::string, std::string> alias;  // output -> input, exactly in place
  Policy policy;
  bool operator==(const WorkloadSpec&) const = default;
};

// The CLI's and the tests' spellings; each returns INVALID_ARGUMENT that names the part at fault.
absl::StatusOr<std::map<std::string, DimBinding>> ParseDims(
    absl::string_view text);  // "M=512,K=1..4096"
absl::StatusOr<std::map<std::string, DType>> ParseTypes(absl::string_view text);  // "A=f16,B=f16"
absl::StatusOr<std::map<std::string, std::vector<int64_t>>> ParseStrides(
    absl::string_view);  // "A=600:1,B=1:512"
absl::StatusOr<std::map<std::string, int64_t>> ParseAlignment(absl::string_view text);  // "A=4"
absl::StatusOr<std::map<std::string, std::string>> ParseAlias(absl::string_view text);  // "y=x"
absl::StatusOr<Policy> ParsePolicy(
    absl::string_view text);  // "tf32,accumulate=C:f16,order=fixed,library=no"

}  // namespace kiln
