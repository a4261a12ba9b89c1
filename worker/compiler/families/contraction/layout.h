// SPDX-License-Identifier: Apache-2.0
// Where a contraction's data lives under a schedule: the axes and buffers of its tile program, and
// the views of them from inside a step's loops.
#pragma once

#include <string>
#include <vector>

#include "worker/compiler/families/contraction/problem.h"
#include "worker/compiler/families/contraction/space.h"
#include "worker/compiler/tile/program.h"

namespace kiln::compiler::contraction {

// One side of the product: where it is in memory and how it is packed.
struct Side {
  bool is_a = true;
  const ProblemAxis* axis = nullptr;  // rows or columns
  int axis_id = -1;
  int64_t tile = 1, block = 1;  // mr and mc, or nr and nc
  int64_t offset = 0;
  int buffer = -1;  // the tensor
  int packed = -1;  // workspace, persistent or scratch; -1: used as it is
  Pack pack = Pack::kNone;
  bool constant = false;
  int64_t Stride(const ProblemAxis& x) const { return is_a ? x.a : x.b; }
};

// The loops of the main step, by role; -1: none.
struct Nest {
  std::vector<int> outer, outer_inside,
      outer_depth;  // per axis; inside: of the grouped, innermost outer axis
  int m0 = -1, n0 = -1, part = -1, k0 = -1, m1 = -1, n1 = -1;
};

class Layout {
 public:
  // Adds axes and buffers to the program. All three arguments must outlive it.
  Layout(const Problem& problem, const Knobs& knobs, tile::Program* program);

  // The output's tile here.
  tile::View OutputView(const tile::Step& step, const Nest& nest) const;
  // Where the sum of a part of the depth goes: the output, or a place laid out like it.
  tile::View PartialView(const tile::Step& step, const Nest& nest) const;
  // Where a tile's sum rests between passes.
  tile::View SumsView(const tile::Step& step, const Nest& nest) const;
  // The epilogue's operands.
  std::vector<tile::View> OperandViews(const tile::Step& step, const Nest& nest) const;
  // The tensor at (position on the side's axis, depth); `inside` walks the axis within a block.
  tile::View SourceView(const tile::Step& step, const Nest& nest, const Side& side, int block,
                        int inside) const;
  // The packed side likewise.
  tile::View PackedView(const tile::Step& step, const Nest& nest, const Side& side, int block,
                        int inside) const;

  // Follows a loop by `factor` elements per iteration, where there is one.
  using Terms = std::vector<std::pair<int, int64_t>>;
  static void Term(Terms& terms, int loop, int64_t factor);

  int row = -1, column = -1, depth = -1;  // axes
  std::vector<int> outer, outer_depth;
  int64_t part = 1;    // depth of one part of a split sum: whole blocks
  int64_t passes = 1;  // over the depth, that one accumulator lives through
  bool empty_sum = false;
  Side a, b;
  int c = -1, partial = -1, sums = -1;  // buffers, which may be the same
  int64_t partial_slab = 0;             // elements of the partial sums of one part
  std::vector<int> operands;

 private:
  int64_t bytes() const { return Bits(p_.type) / 8; }
  int AddAxis(const ProblemAxis& axis, bool reduced);
  int AddTensor(const std::string& name, int tensor, int64_t elements);
  int AddMemory(const std::string& name, tile::Level level, int64_t elements);
  void MakeAxes();
  void MakeSides();
  void MakePlaces();
  int64_t PackedSlab(const Side& side) const;
  int64_t PackedElements(const Side& side) const;
  template <typename Stride>
  void OuterTerms(const tile::Step& step, const Nest& nest, Terms& terms,
                  const Stride& stride) const;
  tile::View PlaceView(const tile::Step& step, const Nest& nest, int buffer, int64_t offset,
                       const std::vector<int64_t>& outer, int64_t row_stride,
                       int64_t column_stride) const;

  const Problem& p_;
  const Knobs& k_;
  tile::Program& program_;
  int64_t scratch_bytes_ = 0;
};

}  // namespace kiln::compiler::contraction
