// SPDX-License-Identifier: Apache-2.0
// Proves a tile program legal: its shape (shape.h), every access within its buffer, buffers within
// their level's memory, aligned and apart, no element written by two blocks of a step, no scratch,
// workspace or persistent memory read before and beyond what was written. Pure.
#pragma once

#include "absl/status/status.h"
#include "worker/compiler/tile/program.h"

namespace kiln::compiler::tile {

// INTERNAL with the step, the buffer and the numbers: a family built something illegal, which is a
// bug of ours.
absl::Status Check(const Program& program);

}  // namespace kiln::compiler::tile
