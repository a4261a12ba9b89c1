// SPDX-License-Identifier: Apache-2.0
// The whole language, executed slowly and obviously, straight from LANGUAGE.md: what everything
// else is checked against.
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "proto/contract/workload.h"
#include "worker/compiler/analysis/host_tensor.h"

namespace kiln::compiler {

enum class Arithmetic {
  kAsSpecified,  // compute types as the language says (f32 in f32, ...)
  kDouble,  // every float operation in f64, rounding only where a type is declared: the reference's
            // semantics
};

// `inputs`: one per input and constant, in order, with the workload's shapes and strides. Returns
// one per output. OUT_OF_RANGE: a data-dependent subscript without `else` fell outside (names
// tensor, subscript and value). UNIMPLEMENTED: dynamic dims (bind them first).
absl::StatusOr<std::vector<HostTensor>> Interpret(const Workload& workload,
                                                  const std::vector<HostTensor>& inputs,
                                                  Arithmetic arithmetic = Arithmetic::kAsSpecified);

}  // namespace kiln::compiler
