// SPDX-License-Identifier: Apache-2.0
// The compiled f64 reference: plain loops in C++ that compute every float in f64 and every output
// element, for any static workload. Written to be obviously right, and checked against the
// interpreter; it shares no code with the emitters. Each reduction is materialised once over its
// free variables, so that its cost is that of the arithmetic.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "proto/contract/workload.h"

namespace kiln::compiler {

// C++ source with one entry
//   extern "C" int kiln_reference(const void* const* inputs, double* const* values, double* const*
//   errors, int threads);
// `inputs`: base pointers of inputs and constants in order. `values[o]`: one f64 per element of
// output o, packed row-major, NOT rounded to the storage type. `errors[o]`, the same shape: how far
// a kernel that follows LANGUAGE.md section 5 (and the workload's policy) can be from the value
// before it stores it, by a first-order analysis of the program: worker/verify/verdict.h has the
// formula. Infinite where an intermediate value can leave the compute type's range or a comparison
// is too close to call. Integer and bool outputs: exact in f64 below 2^53; i64 outputs are written
// bit for bit into `values`. Returns 0, 1 if out of memory, 2 if a subscript that depends on a
// tensor's contents falls outside. `threads` splits the outermost loops with std::thread. Meant for
// -O3 -march=native, without fast-math. UNIMPLEMENTED: dynamic dims.
absl::StatusOr<std::string> EmitReference(const Workload& workload);

}  // namespace kiln::compiler
