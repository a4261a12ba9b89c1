// SPDX-License-Identifier: Apache-2.0
#include "worker/compiler/tile/counts.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

namespace kiln::compiler::tile {
namespace {

// Average iterations of each loop around a leaf: the innermost loop over an axis has the whole
// tiles of the axis shared out evenly among the loops around it.
std::vector<double> AverageTrips(const Program& program, const Step& step,
                                 const std::vector<int>& around) {
  std::vector<double> trips;
  std::map<int, double> so_far;  // iterations of the loops over an axis together
  for (int id : around) {
    const Loop& loop = step.loops[id];
    auto before = so_far.find(loop.axis);
    const double outer = before == so_far.end() ? 1 : before->second;
    const double all =
        before == so_far.end()
            ? static_cast<double>(Iterations(program, loop))
            : std::min(static_cast<double>(CeilDiv(program.axes[loop.axis].extent, loop.step)),
                       outer * static_cast<double>(CeilDiv(loop.span, loop.step)));
    trips.push_back(outer > 0 ? all / outer : 0);
    so_far[loop.axis] = std::max(all, 1e-9);
  }
  return trips;
}

// The average size of a dimension after clipping.
double AverageSize(const Program& program, const TileDim& dim) {
  const int64_t extent = program.axes[dim.axis].extent;
  if (dim.padded) return static_cast<double>(dim.size);
  const int64_t tiles = std::max<int64_t>(1, CeilDiv(extent, dim.size));
  return static_cast<double>(extent) / static_cast<double>(tiles);
}

// Adds a side, unless it leads nowhere else.
void Widen(Box& box, int64_t stride, double count) {
  stride = std::abs(stride);
  if (stride == 0 || count <= 1) return;
  auto after = std::find_if(box.sides.begin(), box.sides.end(),
                            [&](const Box::Side& side) { return side.stride > stride; });
  box.sides.insert(after, {stride, count});
}

// Elements of a run, and all of them.
struct Runs {
  double length = 1, elements = 1;
};
Runs RunsOf(const Box& box) {
  Runs runs;
  for (const Box::Side& side : box.sides) {
    runs.elements *= side.count;
    // Neighbours in memory make longer runs; averages over clipped sizes are rounded up for it.
    const double stride = static_cast<double>(side.stride);
    if (stride <= runs.length * 1.0001) runs.length += stride * (std::ceil(side.count) - 1);
  }
  return runs;
}

double Streams(const Box& box) {
  const Runs runs = RunsOf(box);
  return runs.elements / runs.length;
}

// Bytes of the lines that a run touches: one that starts anywhere touches on the average one line
// more than it fills, less one element, which matters to short ones.
double TouchedBytes(double run_bytes, double line) {
  return run_bytes >= line * 16 ? run_bytes : std::ceil(run_bytes / line) * line;
}

class Counter {
 public:
  Counter(const Program& program, int line_bytes) : program_(program), line_(line_bytes) {}

  Counts Run() {
    for (const Step& step : program_.steps) {
      StepCount count{step.name, step.kind, 0, {}, 0};
      if (step.kind == StepKind::kLibrary) {
        counts_.steps.push_back(std::move(count));
        continue;
      }
      count.blocks = Blocks(program_, step);
      count.scratch_bytes = ScratchBytes(program_, step);
      ForEachLeaf(step, [&](const Statement& leaf, const std::vector<int>& around) {
        count.leaves.push_back(Leaf(step, leaf, around));
      });
      counts_.steps.push_back(std::move(count));
    }
    return std::move(counts_);
  }

 private:
  LeafCount Leaf(const Step& step, const Statement& statement, const std::vector<int>& around) {
    LeafCount leaf;
    leaf.loops = around;
    leaf.trips = AverageTrips(program_, step, around);
    for (double trips : leaf.trips) leaf.executions *= trips;
    ForEachView(statement, [&](const View& view, const std::vector<TileDim>& dims, bool writes) {
      leaf.uses.push_back(Use(view, dims, writes, around, leaf.trips));
    });
    if (const Copy* copy = std::get_if<Copy>(&statement)) {
      leaf.name = copy->name;
      leaf.elements = 1;
      for (const TileDim& dim : copy->dims) leaf.elements *= AverageSize(program_, dim);
      if (step.kind != StepKind::kPrepack)
        counts_.packed_bytes += leaf.uses.back().bytes * leaf.executions;
    } else {
      TileLeaf(std::get<Tile>(statement), leaf);
    }
    return leaf;
  }

  void TileLeaf(const Tile& tile, LeafCount& leaf) {
    leaf.name = tile.name;
    leaf.dot = tile.instruction == Instruction::kDot;
    const double rows = AverageSize(program_, tile.rows),
                 columns = AverageSize(program_, tile.columns);
    const double vectors = leaf.dot ? columns : Vectors(tile);
    leaf.accumulators = rows * vectors;
    for (const Product& product : tile.products) {
      const double depth = AverageSize(program_, {product.axis, product.depth});
      leaf.depth = leaf.dot ? std::ceil(depth / tile.lanes) : depth;
      leaf.useful_fmas = rows * columns * depth;
      leaf.vector_fmas = rows * vectors * leaf.depth;
      leaf.vector_loads = (leaf.dot ? rows + vectors : vectors) * leaf.depth;
      leaf.broadcasts = leaf.dot ? 0 : rows * leaf.depth;
      counts_.flops += 2 * leaf.useful_fmas * leaf.executions;
    }
  }

  // Average registers of one row: whole vectors, and the narrower ones of an unpadded tail.
  double Vectors(const Tile& tile) const {
    double tiles = 0, vectors = 0;
    const int64_t extent = program_.axes[tile.columns.axis].extent;
    for (int64_t size : ClippedSizes(program_, tile.columns)) {
      const double share = size == tile.columns.size ? static_cast<double>(extent / size) : 1;
      const int64_t rest = size % tile.lanes;
      const int64_t tail = rest == 0     ? 0
                           : tile.padded ? 1
                                         : __builtin_popcountll(static_cast<uint64_t>(rest));
      tiles += share;
      vectors += share * static_cast<double>(size / tile.lanes + tail);
    }
    return tiles == 0 ? 0 : vectors / tiles;
  }

  UseCount Use(const View& view, const std::vector<TileDim>& dims, bool writes,
               const std::vector<int>& around, const std::vector<double>& trips) const {
    UseCount use;
    use.buffer = view.buffer;
    use.writes = writes;
    const double element = Bits(program_.buffers[view.buffer].type) / 8.0;
    Box box{{}, element};
    double elements = 1;
    for (size_t d = 0; d < dims.size(); ++d) {
      const double size = AverageSize(program_, dims[d]);
      elements *= size;
      Widen(box, view.strides[d], size);
    }
    use.bytes = elements * element;
    const std::map<int, int64_t> factors(view.loops.begin(), view.loops.end());
    use.footprint.assign(around.size() + 1, 0);
    use.moves.assign(around.size(), false);
    use.boxes.assign(around.size() + 1, box);
    use.run_bytes = RunsOf(box).length * element;
    bool follows = Streams(box) <= kStreams;
    use.footprint[around.size()] = box.Bytes(line_);
    for (size_t l = around.size(); l-- > 0;) {
      auto factor = factors.find(around[l]);
      const int64_t stride = factor == factors.end() ? 0 : factor->second;
      use.moves[l] = stride != 0 && trips[l] > 1;
      Widen(box, stride, trips[l]);
      use.boxes[l] = box;
      follows &= Streams(box) <= kStreams;
      if (follows) use.run_bytes = RunsOf(box).length * element;
      use.footprint[l] = box.Bytes(line_);
    }
    return use;
  }

  const Program& program_;
  const double line_;
  Counts counts_;
};

}  // namespace

double Box::Bytes(double line_bytes) const {
  const Runs runs = RunsOf(*this);
  return runs.elements / runs.length * TouchedBytes(runs.length * element_bytes, line_bytes);
}

double Box::Ways(double way_bytes, double line_bytes) const {
  double run = 1, spread = 1;  // elements; places of a run in the way
  for (const Side& side : sides) {
    const double stride = static_cast<double>(side.stride);
    if (stride <= run * 1.0001) {
      run += stride * (std::ceil(side.count) - 1);
      continue;
    }
    const int64_t way = std::llround(way_bytes), step = std::llround(stride * element_bytes);
    spread *= std::min(side.count, static_cast<double>(way / std::gcd(way, step)));
  }
  const double covered =
      std::min(way_bytes, spread * TouchedBytes(run * element_bytes, line_bytes));
  return Bytes(line_bytes) / covered;
}

Counts Count(const Program& program, int line_bytes) { return Counter(program, line_bytes).Run(); }

}  // namespace kiln::compiler::tile
