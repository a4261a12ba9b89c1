// SPDX-License-Identifier: Apache-2.0
// Prints a tile program as C++ for CPUs: GCC's and Clang's vector extensions, no intrinsics, one
// translation unit that includes nothing. Register tiles become functions of their own with named
// accumulators, one per size that clipping leaves; loops and packing become the entry of each step.
// Pure; equal programs give equal text.
#pragma once

#include <string>

#include "worker/compiler/tile/program.h"

namespace kiln::compiler::emit {

inline constexpr char kEmitter[] = "cpu-c++/1";

// The symbol of a kernel or prepack step.
std::string EntryName(const tile::Step& step, const std::string& prefix = "kiln");

// Buffers that a kernel or prepack step touches, in the order of its arguments (scratch is not
// one).
std::vector<int> ArgumentBuffers(const tile::Program& program, const tile::Step& step);

// `prefix` starts each entry's name, so that several sources can live in one program.
std::string PrintCpp(const tile::Program& program, const std::string& prefix = "kiln");

}  // namespace kiln::compiler::emit
