// SPDX-License-Identifier: Apache-2.0
// Element-wise trees as C++: one inline function per tree, and the small functions that it needs
// (LANGUAGE.md section 5: NaN-propagating maxima, 4 ulp functions). Pure.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "worker/compiler/tile/program.h"

namespace kiln::compiler::emit {

// "static inline float NAME(float acc, float x0, ...) { ... }". Adds to `needs` the names of
// functions for FunctionText.
std::string ExpressionFunction(const tile::Expression& expression, DType type,
                               const std::string& name, int operands, std::set<std::string>* needs);

// Definitions of the functions named in `needs`, in a fixed order, for float or double.
std::string FunctionText(const std::set<std::string>& needs, DType type);

}  // namespace kiln::compiler::emit
