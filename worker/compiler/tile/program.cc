// SPDX-License-Identifier: Apache-2.0
#include "worker/compiler/tile/program.h"

#include <algorithm>

namespace kiln::compiler::tile {

int64_t CeilDiv(int64_t value, int64_t divisor) { return (value + divisor - 1) / divisor; }

int64_t Iterations(const Program& program, const Loop& loop) {
  return CeilDiv(std::min(loop.span, program.axes[loop.axis].extent), loop.step);
}

int64_t Blocks(const Program& program, const Step& step) {
  int64_t blocks = 1;
  for (int loop : step.grid) blocks *= Iterations(program, step.loops[loop]);
  return blocks;
}

int64_t ScratchBytes(const Program& program, const Step& step) {
  int64_t bytes = 0;
  ForEachLeaf(step, [&](const Statement& leaf, const std::vector<int>&) {
    ForEachView(leaf, [&](const View& view, const std::vector<TileDim>&, bool) {
      const Buffer& buffer = program.buffers[view.buffer];
      if (buffer.level != Level::kScratch) return;
      bytes = std::max(bytes, buffer.base + buffer.elements * Bits(buffer.type) / 8);
    });
  });
  return (bytes + 63) / 64 * 64;
}

std::vector<int64_t> ClippedSizes(const Program& program, const TileDim& dim) {
  const int64_t extent = program.axes[dim.axis].extent;
  std::vector<int64_t> sizes;
  if (extent >= dim.size) sizes.push_back(dim.size);
  if (extent % dim.size != 0) sizes.push_back(extent % dim.size);
  return sizes;
}

}  // namespace kiln::compiler::tile
