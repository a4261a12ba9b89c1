// SPDX-License-Identifier: Apache-2.0
// Schedule -> tile program: packing steps, the blocked product, and the reduction of partial sums.
// Pure.
#pragma once

#include <string>

#include "worker/compiler/families/contraction/problem.h"
#include "worker/compiler/families/contraction/space.h"

namespace kiln::compiler::contraction {

tile::Program BuildProgram(const Problem& problem, const Limits& limits, const Knobs& knobs,
                           const std::string& schedule);

// "C[127,253] = A[127,8191] * B[8191,253], f32, with an epilogue".
std::string TitleOf(const Problem& problem);

}  // namespace kiln::compiler::contraction
