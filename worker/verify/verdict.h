// SPDX-License-Identifier: Apache-2.0
// Right or wrong, element by element. Pure.
//
// The reference gives for each element the exact value `want` and an error `e`: how far a kernel
// that follows LANGUAGE.md section 5 can be from it before its result is stored. `e` is a
// first-order analysis of the program itself (worker/compiler/analysis/reference.h): u*|v| for each
// operation, 8u*|v| for each function (4 ulp), carried through the derivatives, and for a reduction
// of length L with accumulator roundoff u
//     (sum of the terms' errors) + min(L, 8 + 4*sqrt(L)) * u * (sum of |terms|).
// So it follows storage type, accumulator, reduction length and policy. An element is right if
//     RoundTo(storage, want - 2e) <= got <= RoundTo(storage, want + 2e),
// which is monotone in rounding, saturation and overflow; 2 covers second-order terms. Further:
//   - want is NaN: got must be NaN; want is infinite: got must be equal;
//   - want is finite and e is not (an intermediate value can leave the compute type's range):
//   anything is right;
//   - want and e are finite: got must be inside; NaN never is;
//   - exact outputs (integers; floats of small-integer sets): e counts as 0.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "proto/contract/spec.h"
#include "worker/compiler/analysis/host_tensor.h"

namespace kiln::verify {

// What one output must hold: per element, packed row-major, the value (i64 outputs: its bits) and
// how far a right kernel may be from it before the result is rounded to the storage type.
struct Expected {
  std::vector<double> values, errors;
};

struct Verdict {
  bool right = true;
  int64_t wrong = 0;      // elements
  int64_t unchecked = 0;  // elements where anything is right
  std::string reason;  // of the first wrong element: "C[3,7] is 1.5, not 2.25 (within 1e-6); 12 of
                       // 4096 are wrong"
  double max_error = 0;  // largest share of the allowed distance that a right element uses, 0 to 1
};

// `got` has the output's shape and strides. A different number of elements is wrong.
Verdict Judge(absl::string_view output, const compiler::HostTensor& got, const Expected& expected,
              bool exact, const Policy& policy);

// The first byte of `got` that belongs to no element and is not `fill`: its offset, or -1.
int64_t FindWrittenPadding(const compiler::HostTensor& got, uint8_t fill);

}  // namespace kiln::verify
