// SPDX-License-Identifier: Apache-2.0
// Exact counts of what a tile program does: operations, accesses, bytes touched inside every loop.
// What cost models are made of. Pure.
#pragma once

#include <string>
#include <vector>

#include "worker/compiler/tile/program.h"

namespace kiln::compiler::tile {

// Elements that are reached together: `count` of them `stride` elements apart, on each side.
struct Box {
  struct Side {
    int64_t stride = 0;
    double count = 1;
  };
  std::vector<Side> sides;  // by ascending stride
  double element_bytes = 4;

  // Distinct bytes, in whole lines.
  double Bytes(double line_bytes) const;
  // Lines that meet in one set, of the sets in use, of a cache with ways of this size.
  double Ways(double way_bytes, double line_bytes) const;
};

// Places that prefetchers of today follow at a time.
inline constexpr double kStreams = 32;

// One view of a leaf (a copy or a tile) in its loop nest.
struct UseCount {
  int buffer = -1;
  bool writes = false;
  double bytes = 0;               // accessed by one execution, each element once
  std::vector<double> footprint;  // [d]: distinct bytes, in whole cache lines, while the d
                                  // outermost loops stand still; the last is one execution's
  std::vector<Box> boxes;         // [d]: where these bytes are
  double run_bytes = 0;     // read on in memory, in up to `kStreams` places side by side, before
                            // the walk jumps elsewhere
  std::vector<bool> moves;  // [l]: whether the loop moves the view
};

struct LeafCount {
  std::string name;
  std::vector<int> loops;     // of the step, outermost first; the grid's come first
  std::vector<double> trips;  // iterations of each loop, on the average over what clips it
  double executions = 1;      // product of trips: whole, whatever the clipping
  double elements = 0;        // of a copy: written per execution
  // Of a tile, per execution; averages where clipping makes tiles of several sizes.
  double useful_fmas = 0;                   // multiply-adds that the result needs
  double vector_fmas = 0;                   // instructions
  double vector_loads = 0, broadcasts = 0;  // of the product
  double accumulators = 0;                  // vector registers that hold the fragment
  double depth = 0;                         // iterations of the product's loop
  bool dot = false;
  std::vector<UseCount> uses;
};

struct StepCount {
  std::string name;
  StepKind kind = StepKind::kKernel;
  int64_t blocks = 0;
  std::vector<LeafCount> leaves;
  int64_t scratch_bytes = 0;
};

struct Counts {
  std::vector<StepCount> steps;
  double flops = 0;         // useful: two per multiply-add
  double packed_bytes = 0;  // written by copies, all steps but prepack
};

// `line_bytes`: of a cache line.
Counts Count(const Program& program, int line_bytes = 64);

}  // namespace kiln::compiler::tile
