// SPDX-License-Identifier: Apache-2.0
// Which elements a view can touch, and whether blocks can touch the same ones: the arithmetic that
// legality and index widths are proven by. Pure; of programs that CheckShape (shape.h) accepts.
#pragma once

#include <cstdint>
#include <vector>

#include "worker/compiler/tile/program.h"

namespace kiln::compiler::tile {

// First and last element (from the buffer's start, both included) that a view can touch; empty
// (first > last) if none.
struct Reach {
  int64_t first = 0, last = -1;
};
Reach ReachOf(const Program& program, const Step& step, const View& view,
              const std::vector<TileDim>& dims, const std::vector<int>& around);

// No two combinations of block numbers reach the same element. Sufficient, not necessary: all that
// moves the view by as much as a grid loop does must do so in strides beyond the reach of
// everything with smaller ones, like the digits of a number.
bool BlocksAreDisjoint(const Program& program, const Step& step, const View& view,
                       const std::vector<TileDim>& dims, const std::vector<int>& around);

// For a tensor whose elements do not overlap it is enough that every block has its own positions:
// each grid loop moves the view along its axis as the axis itself does.
bool BlocksHaveTheirOwnPositions(const Program& program, const Step& step, const View& view,
                                 const std::vector<TileDim>& dims, const std::vector<int>& around);

// The largest distance in bytes that an index of the step has to express.
int64_t LargestOffsetBytes(const Program& program, const Step& step);

}  // namespace kiln::compiler::tile
