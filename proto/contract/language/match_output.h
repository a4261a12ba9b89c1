// SPDX-License-Identifier: Apache-2.0
// C = sum(A[i,k] * B[k,j]): the axes of an output that stands bare on the left of a statement with
// subscripts.
#pragma once

#include "proto/contract/language/scope.h"

namespace kiln::language {

// Matches each declared dim of `output` to the one variable of `value` that ranges over it. False,
// with an error that says to write C[i,j] = ..., where a dim is no plain name or none or two
// variables range over it.
bool MatchOutputDims(Scope* scope, const Expr& value, const TensorSymbol& output, size_t offset,
                     std::vector<AxisSyntax>* axes);

}  // namespace kiln::language
