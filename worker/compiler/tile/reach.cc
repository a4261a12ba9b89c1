// SPDX-License-Identifier: Apache-2.0
#include "worker/compiler/tile/reach.h"

#include <algorithm>
#include <map>
#include <set>

namespace kiln::compiler::tile {
namespace {

// How far the loops over one axis and the tile's dimension along it move a view, at most.
struct AxisReach {
  int64_t loops = 0, dims = 0;    // in elements, signed
  bool exact = true;              // loops and dimension all move by one factor per unit of the axis
  int64_t factor = 0, units = 0;  // that factor; the largest position
  int64_t limit = 0;              // positions that exist
};

// Of loops that move it by at least `below` per iteration, nothing is counted.
AxisReach ReachAlong(const Program& program, const Step& step, const View& view,
                     const std::vector<TileDim>& dims, const std::vector<int>& around, int axis,
                     int64_t below = INT64_MAX) {
  AxisReach reach;
  reach.limit = program.axes[axis].extent;
  // What the loops alone reach: if all move the view alike, the last multiple of the innermost
  // step.
  bool first = true, alike = true;
  int64_t loop_units = 0, innermost = 1;
  for (int id : around) {
    const Loop& loop = step.loops[id];
    const int64_t last = Iterations(program, loop) - 1;
    if (loop.axis != axis || last == 0) continue;
    auto term = std::find_if(view.loops.begin(), view.loops.end(),
                             [&](const auto& t) { return t.first == id; });
    const int64_t factor = term == view.loops.end() ? 0 : term->second;
    if (std::abs(factor) >= below) continue;
    reach.loops += factor * last;
    alike &= factor % loop.step == 0 && (first || factor / loop.step == reach.factor);
    reach.factor = factor / loop.step;
    loop_units += last * loop.step;
    innermost = loop.step;
    first = false;
  }
  if (alike && !first) {
    const int64_t last = (CeilDiv(program.axes[axis].extent, innermost) - 1) * innermost;
    loop_units = std::min(loop_units, last);
    reach.loops = reach.factor * loop_units;
  }
  reach.exact = alike;
  reach.units = loop_units;
  for (size_t d = 0; d < dims.size(); ++d) {
    if (dims[d].axis != axis || std::abs(view.strides[d]) >= below) continue;
    if (dims[d].padded) reach.limit = CeilDiv(reach.limit, dims[d].size) * dims[d].size;
    const int64_t size = std::min(dims[d].size, reach.limit);
    reach.exact &= first || view.strides[d] == reach.factor;
    reach.factor = view.strides[d];
    reach.dims += view.strides[d] * (size - 1);
    reach.units += size - 1;
  }
  return reach;
}

// Whether all loops over the axis that surround a statement also move the view, each by the stride
// of its tile dimension: then a position on the axis is an address, and clipping bounds it exactly.
bool FollowsAxis(const Step& step, const View& view, int axis, int64_t stride,
                 const std::vector<int>& around) {
  for (int id : around) {
    if (step.loops[id].axis != axis) continue;
    auto moved = std::find_if(view.loops.begin(), view.loops.end(),
                              [&](const auto& term) { return term.first == id; });
    const int64_t factor = moved == view.loops.end() ? 0 : moved->second;
    if (factor != stride * step.loops[id].step) return false;
  }
  return true;
}

}  // namespace

Reach ReachOf(const Program& program, const Step& step, const View& view,
              const std::vector<TileDim>& dims, const std::vector<int>& around) {
  Reach reach{view.offset, view.offset};
  for (int id : around) {
    if (Iterations(program, step.loops[id]) == 0) return {0, -1};
  }
  for (const TileDim& dim : dims) {
    if (program.axes[dim.axis].extent == 0) return {0, -1};
  }
  auto extend = [&](int64_t by) { (by < 0 ? reach.first : reach.last) += by; };
  for (int axis = 0; axis < static_cast<int>(program.axes.size()); ++axis) {
    const AxisReach along = ReachAlong(program, step, view, dims, around, axis);
    if (along.exact) {
      extend(along.factor * std::min(along.units, along.limit - 1));
    } else {
      extend(along.loops);
      extend(along.dims);
    }
  }
  return reach;
}

bool BlocksAreDisjoint(const Program& program, const Step& step, const View& view,
                       const std::vector<TileDim>& dims, const std::vector<int>& around) {
  const std::map<int, int64_t> factors(view.loops.begin(), view.loops.end());
  const std::set<int> grid(step.grid.begin(), step.grid.end());
  std::vector<int64_t> digits;
  int64_t smallest = INT64_MAX;  // of the grid's
  for (int id : around) {
    if (Iterations(program, step.loops[id]) <= 1) continue;
    auto factor = factors.find(id);
    const int64_t stride = factor == factors.end() ? 0 : std::abs(factor->second);
    if (grid.count(id)) {
      if (stride == 0) return false;
      smallest = std::min(smallest, stride);
    }
    if (stride != 0) digits.push_back(stride);
  }
  for (size_t d = 0; d < dims.size(); ++d) {
    const int64_t stride = std::abs(view.strides[d]);
    if (stride != 0 && std::min(dims[d].size, program.axes[dims[d].axis].extent) > 1) {
      digits.push_back(stride);
    }
  }
  std::set<int64_t> seen;
  for (int64_t stride : digits) {
    if (stride < smallest) continue;
    if (!seen.insert(stride).second) return false;
    int64_t inside = 0;
    for (int axis = 0; axis < static_cast<int>(program.axes.size()); ++axis) {
      const AxisReach along = ReachAlong(program, step, view, dims, around, axis, stride);
      inside += along.exact ? std::abs(along.factor) * std::min(along.units, along.limit - 1)
                            : std::abs(along.loops) + std::abs(along.dims);
    }
    if (inside >= stride) return false;
  }
  return true;
}

bool BlocksHaveTheirOwnPositions(const Program& program, const Step& step, const View& view,
                                 const std::vector<TileDim>& dims, const std::vector<int>& around) {
  for (int id : step.grid) {
    if (Iterations(program, step.loops[id]) <= 1) continue;
    const int axis = step.loops[id].axis;
    int64_t stride = 0;
    for (size_t d = 0; d < dims.size(); ++d) {
      if (dims[d].axis == axis) stride = view.strides[d];
    }
    if (stride == 0) {
      for (const auto& [loop, factor] : view.loops) {
        if (step.loops[loop].axis == axis && factor != 0) stride = factor / step.loops[loop].step;
      }
    }
    if (stride == 0 || !FollowsAxis(step, view, axis, stride, around)) return false;
  }
  return true;
}

int64_t LargestOffsetBytes(const Program& program, const Step& step) {
  int64_t largest = 0;
  ForEachLeaf(step, [&](const Statement& leaf, const std::vector<int>& around) {
    ForEachView(leaf, [&](const View& view, const std::vector<TileDim>& dims, bool) {
      const Reach reach = ReachOf(program, step, view, dims, around);
      const int64_t bytes = Bits(program.buffers[view.buffer].type) / 8;
      // One tile past the end is computed by pointer increments, though never accessed.
      int64_t past = 0;
      for (size_t d = 0; d < dims.size(); ++d) past += std::abs(view.strides[d]) * dims[d].size;
      largest = std::max({largest, (std::abs(reach.last) + past + 1) * bytes,
                          (std::abs(reach.first) + past + 1) * bytes});
    });
  });
  for (int id : step.grid) largest = std::max(largest, program.axes[step.loops[id].axis].extent);
  return largest;
}

}  // namespace kiln::compiler::tile
