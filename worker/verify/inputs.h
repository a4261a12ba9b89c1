// SPDX-License-Identifier: Apache-2.0
// The inputs that candidates are verified and measured on: deterministic in workload, kind and
// seed, whatever the machine. Pure.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/strings/string_view.h"
#include "proto/contract/workload.h"
#include "worker/compiler/analysis/host_tensor.h"

namespace kiln::verify {

enum class SetKind : uint8_t {
  kSmallInteger,  // small whole numbers: sums are exact in any order, which shows dropped or
                  // doubled terms
  kRandom,        // uniform in [-1, 1]
  kCancellation,  // large terms that nearly cancel
  kNegative,      // all in [-1, 0): a maximum that starts from 0 shows
  kExtreme,       // powers of two over much of the type's range, denormals, signed zeros
  kNonFinite,     // mostly random, with NaN, infinities and -0 in some places
};

// "small-integer", "random", ...
absl::string_view Print(SetKind kind);

// The kinds that this workload is verified on, cheapest proof first: without floats only the first
// two, without kNonFinite where the policy promises finite operands.
std::vector<SetKind> SetKinds(const Workload& workload);

// One tensor per input and constant, in order, with the workload's shapes and strides. Integer
// tensors that subscripts or bounds depend on hold valid values (those that bounds depend on
// ascend). Bytes that belong to no element are 0xFF.
std::vector<compiler::HostTensor> MakeInputs(const Workload& workload, SetKind kind, uint64_t seed);

// An output of the workload's shape and strides with all bytes `fill`; `output` counts outputs.
compiler::HostTensor MakeOutput(const Workload& workload, int output, uint8_t fill);

}  // namespace kiln::verify
