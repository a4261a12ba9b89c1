// SPDX-License-Identifier: Apache-2.0
// The compiled f64 reference: plain loops in C++ that compute every float in f64 and every output element, for any
// static workload. Written to be obviously right, and checked against the interpreter; it shares no code with the
// emitters. Each reduction is materialised once over its free variables, so that its cost is that of the arithmetic.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "proto/contract/workload.h"

namespace kiln::compiler {

// C++ source with one entry
//   extern "C" int kiln_reference(const void* const* inputs, double* const* values, double* const* scales, int threads);
// `inputs`: base pointers of inputs and constants in order. `values[o]`: one f64 per element of output o, packed row-major,
// NOT rounded to the storage type. `scales[o]`: for the tolerance, the same shape: the value computed with every term's
// magnitude (|a|*|b| summed, and so on up the tree), i.e. the scale that rounding errors of this element can have.
// Integer outputs are exact in f64 below 2^53; i64 outputs are written bit for bit into `values`. Returns 0, or 1 if out of memory.
// `threads` splits the outermost loops with std::thread. UNIMPLEMENTED: dynamic dims.
absl::StatusOr<std::string> EmitReference(const Workload& workload);

}  // namespace kiln::compiler
