// SPDX-License-Identifier: Apache-2.0
// Counts of small programs, beside what a hand counts.
#include "worker/compiler/tile/counts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/worker/compiler/tile/programs.h"

namespace kiln::compiler::tile {
namespace {

using ::testing::ElementsAre;

// 5 x 7 x 3: two blocks of rows; in each, two panels of B are packed (4 + 3 columns); tiles of 2, 2
// and 1 rows by 4 and 3 columns: six.
TEST(Count, OfTailsIsExact) {
  const Counts counts = Count(TinyProduct(5, 7, 3));
  ASSERT_EQ(counts.steps.size(), 1);
  const StepCount& step = counts.steps[0];
  EXPECT_EQ(step.blocks, 2);
  EXPECT_EQ(step.scratch_bytes, 128);  // 3 x 8 floats, in whole lines
  EXPECT_EQ(counts.flops, 2 * 5 * 7 * 3);
  EXPECT_EQ(counts.packed_bytes, 2 * 2 * (3 * 4) * 4);
  ASSERT_EQ(step.leaves.size(), 2);

  const LeafCount& pack = step.leaves[0];
  EXPECT_THAT(pack.loops, ElementsAre(kN0, kM0, kN1));
  EXPECT_THAT(pack.trips, ElementsAre(1, 2, 2));
  EXPECT_EQ(pack.executions, 4);
  EXPECT_EQ(pack.elements, 3 * 4);
  EXPECT_EQ(pack.uses[0].bytes * pack.executions, 2 * 3 * 7 * 4);  // B, read by both blocks
  EXPECT_EQ(pack.useful_fmas, 0);

  const LeafCount& tile = step.leaves[1];
  EXPECT_THAT(tile.loops, ElementsAre(kN0, kM0, kN1, kM1));
  EXPECT_DOUBLE_EQ(tile.executions, 6);
  EXPECT_DOUBLE_EQ(tile.useful_fmas * tile.executions, 5 * 7 * 3);
  EXPECT_DOUBLE_EQ(tile.vector_fmas * tile.executions, 5 * 2 * 3);  // a padded panel is one vector
  EXPECT_DOUBLE_EQ(tile.vector_loads * tile.executions, 6 * 3);
  EXPECT_DOUBLE_EQ(tile.broadcasts * tile.executions, 2 * 5 * 3);
  EXPECT_EQ(tile.depth, 3);
  double stored = 0;
  for (const UseCount& use : tile.uses) {
    if (use.writes) stored += use.bytes * tile.executions;
  }
  EXPECT_DOUBLE_EQ(stored, 5 * 7 * 4);
}

TEST(Count, OfAnUnpaddedTailIsOfNarrowerVectors) {
  Program program = TinyProduct(5, 7, 3);
  TileOf(program).padded = false;
  const LeafCount tile = Count(program).steps[0].leaves[1];
  // 4 columns are one vector, 3 are one of two and a single one.
  EXPECT_DOUBLE_EQ(tile.vector_fmas * tile.executions, 5 * (1 + 2) * 3);
}

TEST(Count, OfDotsIsInVectorsOfTheDepth) {
  Program program = TinyProduct(4, 8, 10);
  TileOf(program).instruction = Instruction::kDot;
  const LeafCount tile = Count(program).steps[0].leaves[1];
  EXPECT_TRUE(tile.dot);
  EXPECT_EQ(tile.depth, 3);  // 10 in vectors of 4
  EXPECT_EQ(tile.accumulators, kRows * kColumns);
  EXPECT_EQ(tile.vector_fmas, kRows * kColumns * 3);
  EXPECT_EQ(tile.vector_loads, (kRows + kColumns) * 3);
  EXPECT_EQ(tile.broadcasts, 0);
}

// B is 4 rows of 16 floats, a line each: a panel touches all four lines, and so does all of B.
TEST(Count, FootprintsAreWholeLines) {
  const LeafCount pack = Count(TinyProduct(8, 16, 4), 64).steps[0].leaves[0];
  const UseCount& source = pack.uses[0];
  EXPECT_EQ(source.buffer, kB);
  EXPECT_FALSE(source.writes);
  EXPECT_EQ(source.bytes, 4 * 4 * 4);
  EXPECT_THAT(source.footprint, ElementsAre(256, 256, 256, 256));
  EXPECT_THAT(source.moves, ElementsAre(true, false, true));
  // With lines of one float, a byte is a byte.
  EXPECT_THAT(Count(TinyProduct(8, 16, 4), 4).steps[0].leaves[0].uses[0].footprint,
              ElementsAre(256, 128, 128, 64));
}

TEST(Count, OfNothingIsNothing) {
  const Counts counts = Count(Program{});
  EXPECT_TRUE(counts.steps.empty());
  EXPECT_EQ(counts.flops, 0);
}

TEST(Count, ReadsNoLibrary) {
  Program program = TinyProduct(4, 8, 2);
  OnlyStep(program).kind = StepKind::kLibrary;
  OnlyStep(program).body.clear();
  const Counts counts = Count(program);
  EXPECT_EQ(counts.steps[0].kind, StepKind::kLibrary);
  EXPECT_EQ(counts.steps[0].blocks, 0);
}

TEST(Count, PrepackingIsNotPacking) {
  Program program = TinyProduct(5, 7, 3);
  OnlyStep(program).kind = StepKind::kPrepack;
  EXPECT_EQ(Count(program).packed_bytes, 0);
}

}  // namespace
}  // namespace kiln::compiler::tile
