// SPDX-License-Identifier: Apache-2.0
// The plan of a tile program: steps with grids, scratch and arguments; what tensors and the device
// must offer. And the flags for the host compiler. Pure.
#pragma once

#include <string>
#include <vector>

#include "proto/contract/device.h"
#include "proto/contract/graph.h"
#include "proto/contract/plan.h"
#include "worker/compiler/tile/program.h"

namespace kiln::compiler::emit {

// steps[].artifact is left empty. Grids are one-dimensional: x counts the blocks.
Plan MakePlan(const tile::Program& program, const Graph& graph, const DeviceFingerprint& device);

// Instruction set extensions that the emitted code is compiled for, of those that the device has.
std::vector<std::string> UsedFeatures(const DeviceFingerprint& device);

// Never -ffast-math: NaN, infinities, signed zeros and division are strict. Contraction to fma is
// allowed by the language.
std::vector<std::string> CompilerFlags(const DeviceFingerprint& device);

}  // namespace kiln::compiler::emit
