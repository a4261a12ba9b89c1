// SPDX-License-Identifier: Apache-2.0
#include "worker/compiler/families/contraction/layout.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace kiln::compiler::contraction {

using tile::CeilDiv;
using tile::Level;
using tile::Step;
using tile::View;

void Layout::Term(Terms& terms, int loop, int64_t factor) {
  if (loop >= 0 && factor != 0) terms.push_back({loop, factor});
}

Layout::Layout(const Problem& problem, const Knobs& knobs, tile::Program* program)
    : p_(problem), k_(knobs), program_(*program) {
  MakeAxes();
  MakeSides();
  MakePlaces();
}

int Layout::AddAxis(const ProblemAxis& axis, bool reduced) {
  program_.axes.push_back({axis.name, axis.extent, reduced});
  return static_cast<int>(program_.axes.size()) - 1;
}

void Layout::MakeAxes() {
  row = AddAxis(p_.row, false);
  column = AddAxis(p_.column, false);
  depth = AddAxis(p_.depth, true);
  for (const ProblemAxis& axis : p_.outer) outer.push_back(AddAxis(axis, false));
  for (const ProblemAxis& axis : p_.outer_depth) outer_depth.push_back(AddAxis(axis, true));
  // Each part of a split depth is whole blocks; the passes over the depth that one accumulator
  // lives through.
  part = k_.split > 1 ? CeilDiv(CeilDiv(p_.depth.extent, k_.split), k_.kc) * k_.kc
                      : std::max<int64_t>(1, p_.depth.extent);
  passes = CeilDiv(std::min(part, p_.depth.extent), k_.kc);
  for (const ProblemAxis& axis : p_.outer_depth) {
    passes *= axis.extent;
    empty_sum |= axis.extent == 0;
  }
  empty_sum |= p_.depth.extent == 0;
}

int Layout::AddTensor(const std::string& name, int tensor, int64_t elements) {
  program_.buffers.push_back({name, Level::kGlobal, p_.type, elements, bytes(), tensor});
  return static_cast<int>(program_.buffers.size()) - 1;
}

int Layout::AddMemory(const std::string& name, Level level, int64_t elements) {
  int64_t* size = level == Level::kWorkspace    ? &program_.workspace_bytes
                  : level == Level::kPersistent ? &program_.persistent_bytes
                                                : &scratch_bytes_;
  program_.buffers.push_back({name, level, p_.type, elements, 64, -1, *size});
  *size += (elements * bytes() + 63) / 64 * 64;
  return static_cast<int>(program_.buffers.size()) - 1;
}

// Elements of one packed side, per position of the outer loops that it depends on.
int64_t Layout::PackedSlab(const Side& side) const {
  return CeilDiv(p_.depth.extent, k_.kc) * k_.kc * CeilDiv(side.axis->extent, side.tile) *
         side.tile;
}

int64_t Layout::PackedElements(const Side& side) const {
  if (side.pack == Pack::kBlock) return side.block * k_.kc;
  int64_t elements = PackedSlab(side);
  for (const ProblemAxis& axis : p_.outer_depth) elements *= axis.extent;
  for (const ProblemAxis& axis : p_.outer) elements *= side.Stride(axis) != 0 ? axis.extent : 1;
  return elements;
}

void Layout::MakeSides() {
  a = {true, &p_.row, row, k_.mr, k_.mc, p_.a_offset, -1, -1, k_.pack_a, p_.a_constant};
  b = {false, &p_.column, column, k_.nr, k_.nc, p_.b_offset, -1, -1, k_.pack_b, p_.b_constant};
  if (empty_sum) return;
  for (Side* side : {&a, &b}) {
    const std::string name = side->is_a ? "a" : "b";
    side->buffer =
        AddTensor(side->is_a ? "A" : "B", side->is_a ? p_.a : p_.b, p_.spans[side->is_a ? 0 : 1]);
    if (side->pack == Pack::kNone) continue;
    const Level level = side->pack == Pack::kBlock ? Level::kScratch
                        : side->constant           ? Level::kPersistent
                                                   : Level::kWorkspace;
    side->packed = AddMemory("packed_" + name, level, PackedElements(*side));
  }
}

void Layout::MakePlaces() {
  c = AddTensor("C", p_.c, p_.spans[2]);
  for (size_t x = 0; x < p_.operands.size(); ++x) {
    operands.push_back(AddTensor(absl::StrCat("X", x), p_.operands[x].tensor, p_.operand_spans[x]));
  }
  // Sums between passes rest in the output itself, unless something else lives there or they are
  // summed in parts; or densely in scratch.
  sums = partial = c;
  if (empty_sum) return;
  if (k_.split > 1 || (passes > 1 && p_.aliased && !k_.sums_in_scratch)) {
    partial_slab = p_.row.extent * p_.column.extent * p_.OuterCount();
    partial = AddMemory("partial", Level::kWorkspace, partial_slab * k_.split);
    sums = partial;
  }
  if (passes > 1 && k_.sums_in_scratch) sums = AddMemory("sums", Level::kScratch, k_.mc * k_.nc);
}

// Follows the outer loops by `stride(axis)` elements per unit.
template <typename Stride>
void Layout::OuterTerms(const Step& step, const Nest& nest, Terms& terms,
                        const Stride& stride) const {
  for (size_t i = 0; i < p_.outer.size(); ++i) {
    const int loop = nest.outer[i];
    Term(terms, loop, loop < 0 ? 0 : stride(i) * step.loops[loop].step);
    Term(terms, nest.outer_inside[i], stride(i));
  }
}

// The output's tile here, or a place laid out like it.
View Layout::PlaceView(const Step& step, const Nest& nest, int buffer, int64_t offset,
                       const std::vector<int64_t>& outer, int64_t row_stride,
                       int64_t column_stride) const {
  View view{buffer, offset, {}, {row_stride, column_stride}};
  OuterTerms(step, nest, view.loops, [&](size_t i) { return outer[i]; });
  for (int loop : {nest.m0, nest.m1})
    Term(view.loops, loop, loop < 0 ? 0 : row_stride * step.loops[loop].step);
  for (int loop : {nest.n0, nest.n1})
    Term(view.loops, loop, loop < 0 ? 0 : column_stride * step.loops[loop].step);
  return view;
}

View Layout::OutputView(const Step& step, const Nest& nest) const {
  std::vector<int64_t> strides;
  for (const ProblemAxis& axis : p_.outer) strides.push_back(axis.c);
  return PlaceView(step, nest, c, 0, strides, p_.row.c, p_.column.c);
}

View Layout::PartialView(const Step& step, const Nest& nest) const {
  if (partial == c) return OutputView(step, nest);
  std::vector<int64_t> strides(p_.outer.size());
  int64_t slab = p_.row.extent * p_.column.extent;
  for (size_t i = p_.outer.size(); i-- > 0;) {
    strides[i] = slab;
    slab *= p_.outer[i].extent;
  }
  View view = PlaceView(step, nest, partial, 0, strides, p_.column.extent, 1);
  Term(view.loops, nest.part, slab);
  return view;
}

// Where a tile's sum rests between passes; in scratch, tile by tile.
View Layout::SumsView(const Step& step, const Nest& nest) const {
  if (sums == partial) return PartialView(step, nest);
  View view{sums, 0, {}, {k_.nr, 1}};
  Term(view.loops, nest.m1, k_.mr * k_.nc);
  Term(view.loops, nest.n1, k_.mr * k_.nr);
  return view;
}

std::vector<View> Layout::OperandViews(const Step& step, const Nest& nest) const {
  std::vector<View> views;
  for (size_t x = 0; x < operands.size(); ++x) {
    std::vector<int64_t> strides;
    for (const ProblemAxis& axis : p_.outer) strides.push_back(axis.operands[x]);
    views.push_back(PlaceView(step, nest, operands[x], p_.operands[x].offset, strides,
                              p_.row.operands[x], p_.column.operands[x]));
  }
  return views;
}

// The tensor at (position on the side's axis, depth); `inside` walks the axis within a block.
View Layout::SourceView(const Step& step, const Nest& nest, const Side& side, int block,
                        int inside) const {
  View view{side.buffer, side.offset, {}, {}};
  OuterTerms(step, nest, view.loops, [&](size_t i) { return side.Stride(p_.outer[i]); });
  for (size_t i = 0; i < p_.outer_depth.size(); ++i)
    Term(view.loops, nest.outer_depth[i], side.Stride(p_.outer_depth[i]));
  for (int loop : {nest.part, nest.k0})
    Term(view.loops, loop, loop < 0 ? 0 : side.Stride(p_.depth) * step.loops[loop].step);
  for (int loop : {block, inside})
    Term(view.loops, loop, loop < 0 ? 0 : side.Stride(*side.axis) * step.loops[loop].step);
  return view;
}

// The packed side: [outer][outer depth][depth block][panel][p][lane], or in scratch
// [panel][p][lane].
View Layout::PackedView(const Step& step, const Nest& nest, const Side& side, int block,
                        int inside) const {
  View view{side.packed, 0, {}, {}};
  Term(view.loops, inside, inside < 0 ? 0 : step.loops[inside].step * k_.kc);
  if (side.pack == Pack::kBlock) return view;
  Term(view.loops, block, block < 0 ? 0 : step.loops[block].step * k_.kc);
  const int64_t panels = CeilDiv(side.axis->extent, side.tile) * side.tile;
  for (int loop : {nest.part, nest.k0})
    Term(view.loops, loop, loop < 0 ? 0 : step.loops[loop].step * panels);
  int64_t slab = PackedSlab(side);
  for (size_t i = p_.outer_depth.size(); i-- > 0;) {
    Term(view.loops, nest.outer_depth[i], slab);
    slab *= p_.outer_depth[i].extent;
  }
  std::vector<int64_t> strides(p_.outer.size(), 0);
  for (size_t i = p_.outer.size(); i-- > 0;) {
    if (side.Stride(p_.outer[i]) == 0) continue;
    strides[i] = slab;
    slab *= p_.outer[i].extent;
  }
  OuterTerms(step, nest, view.loops, [&](size_t i) { return strides[i]; });
  return view;
}

}  // namespace kiln::compiler::contraction
