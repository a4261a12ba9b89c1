// SPDX-License-Identifier: Apache-2.0
// Proves a tile program legal: shape of the program, every access within its buffer, scratch and
// workspace extents, alignment claims, no element written by two blocks of a step, no scratch,
// workspace or persistent memory read before it was written. Pure.
#pragma once

#include "absl/status/status.h"
#include "worker/compiler/tile/program.h"

namespace kiln::compiler::tile {

// First and last element (from the buffer's start, both included) that a view can touch; empty
// (first > last) if none.
struct Reach {
  int64_t first = 0, last = -1;
};
Reach ReachOf(const Program& program, const Step& step, const View& view,
              const std::vector<TileDim>& dims, const std::vector<int>& around);

// INTERNAL with the step, the buffer and the numbers: a family built something illegal, which is a
// bug of ours.
absl::Status Check(const Program& program);

// The largest distance in bytes that an index of the step has to express.
int64_t LargestOffsetBytes(const Program& program, const Step& step);

}  // namespace kiln::compiler::tile
