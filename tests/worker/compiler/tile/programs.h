// SPDX-License-Identifier: Apache-2.0
// A small product as a tile program, written out by hand, for tests that break or count it.
#pragma once

#include <cstdint>

#include "worker/compiler/tile/program.h"

namespace kiln::compiler::tile {

// Where things are in the program below.
inline constexpr int kRow = 0, kColumn = 1, kDepth = 2;    // axes
inline constexpr int kA = 0, kB = 1, kC = 2, kPacked = 3;  // buffers
inline constexpr int kM0 = 0, kN0 = 1, kM1 = 2, kN1 = 3;   // loops
inline constexpr int64_t kRows = 2, kColumns = 4, kBlockRows = 4, kBlockColumns = 8;

// C[m,n] = A[m,k] * B[k,n], packed tensors, in tiles of 2 x 4 by vectors of 4; blocks of 4 x 8,
// each packing all of its B into scratch first: panels of 4 columns, zeros beyond the last.
inline Program TinyProduct(int64_t m, int64_t n, int64_t k) {
  Program program;
  program.title = "tiny";
  program.axes = {{"m", m}, {"n", n}, {"k", k, true}};
  program.buffers = {{"A", Level::kGlobal, DType::kF32, m * k, 4, 0},
                     {"B", Level::kGlobal, DType::kF32, k * n, 4, 1},
                     {"C", Level::kGlobal, DType::kF32, m * n, 4, 2},
                     {"packed", Level::kScratch, DType::kF32, k * kBlockColumns, 64, -1, 0}};
  Step step;
  step.name = "product";
  step.loops = {{"m0", kRow, kBlockRows, m},
                {"n0", kColumn, kBlockColumns, n},
                {"m1", kRow, kRows, kBlockRows},
                {"n1", kColumn, kColumns, kBlockColumns}};
  step.grid = {kM0, kN0};
  Copy copy{"pack",
            {{kDepth, k}, {kColumn, kColumns, true}},
            View{kPacked, 0, {{kN1, kColumns * k}}, {kColumns, 1}},
            View{kB, 0, {{kN0, kBlockColumns}, {kN1, kColumns}}, {n, 1}}};
  Tile tile;
  tile.name = "product";
  tile.rows = {kRow, kRows};
  tile.columns = {kColumn, kColumns};
  tile.lanes = 4;
  tile.padded = true;
  tile.products = {{View{kA, 0, {{kM0, kBlockRows * k}, {kM1, kRows * k}}, {k, 1}},
                    View{kPacked, 0, {{kN1, kColumns * k}}, {kColumns, 1}}, kDepth, k}};
  tile.stores.push_back(
      {View{kC,
            0,
            {{kM0, kBlockRows * n}, {kN0, kBlockColumns}, {kM1, kRows * n}, {kN1, kColumns}},
            {n, 1}},
       When::kAlways,
       {},
       {}});
  step.body = {For{kN1, {copy}}, For{kN1, {For{kM1, {tile}}}}};
  program.steps = {step};
  return program;
}

inline Step& OnlyStep(Program& program) { return program.steps[0]; }
inline Copy& PackOf(Program& program) {
  return std::get<Copy>(std::get<For>(OnlyStep(program).body[0]).body[0]);
}
inline Tile& TileOf(Program& program) {
  For& columns = std::get<For>(OnlyStep(program).body[1]);
  return std::get<Tile>(std::get<For>(columns.body[0]).body[0]);
}

}  // namespace kiln::compiler::tile
