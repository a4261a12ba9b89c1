// SPDX-License-Identifier: Apache-2.0
#include "worker/compiler/families/contraction/build.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace kiln::compiler::contraction {
namespace {

using tile::CeilDiv;
using tile::Copy;
using tile::For;
using tile::Level;
using tile::Loop;
using tile::Statement;
using tile::Step;
using tile::StepKind;
using tile::Tile;
using tile::TileDim;
using tile::View;
using tile::When;

// Bytes that one block of a packing step is given: enough to outweigh its start, few enough to
// balance.
constexpr int64_t kPackBlockBytes = 128 * 1024;
// What it reads on in a row of memory, where it can: jumps cost.
constexpr int64_t kPackRunBytes = 8192;
// Rows that are packed at a time where the source's rows are contiguous: each is then read as a
// stream.
constexpr int64_t kPackRows = 8;

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

class Builder {
 public:
  Builder(const Problem& problem, const Limits& limits, const Knobs& knobs)
      : p_(problem), limits_(limits), k_(knobs) {}

  tile::Program Run(const std::string& schedule) {
    program_.title = TitleOf(p_);
    program_.schedule = schedule;
    if (p_.empty()) return std::move(program_);
    MakeAxes();
    MakeSides();
    MakePlaces();
    for (Side* side : {&a_, &b_}) {
      if (side->pack == Pack::kStep) PackStep(*side);
    }
    ProductStep();
    if (k_.split > 1) SumStep();
    return std::move(program_);
  }

 private:
  int64_t bytes() const { return Bits(p_.type) / 8; }
  int AddAxis(const ProblemAxis& axis, bool reduced) {
    program_.axes.push_back({axis.name, axis.extent, reduced});
    return static_cast<int>(program_.axes.size()) - 1;
  }
  int AddLoop(Step& step, const std::string& name, int axis, int64_t step_size,
              int64_t span) const {
    step.loops.push_back({name, axis, step_size, span});
    return static_cast<int>(step.loops.size()) - 1;
  }

  void MakeAxes() {
    row_ = AddAxis(p_.row, false);
    column_ = AddAxis(p_.column, false);
    depth_ = AddAxis(p_.depth, true);
    for (const ProblemAxis& axis : p_.outer) outer_.push_back(AddAxis(axis, false));
    for (const ProblemAxis& axis : p_.outer_depth) outer_depth_.push_back(AddAxis(axis, true));
    // Each part of a split depth is whole blocks; the passes over the depth that one accumulator
    // lives through.
    part_ = k_.split > 1 ? CeilDiv(CeilDiv(p_.depth.extent, k_.split), k_.kc) * k_.kc
                         : std::max<int64_t>(1, p_.depth.extent);
    passes_ = CeilDiv(std::min(part_, p_.depth.extent), k_.kc);
    for (const ProblemAxis& axis : p_.outer_depth) {
      passes_ *= axis.extent;
      empty_sum_ |= axis.extent == 0;
    }
    empty_sum_ |= p_.depth.extent == 0;
  }

  int AddTensor(const std::string& name, int tensor, int64_t elements) {
    program_.buffers.push_back({name, Level::kGlobal, p_.type, elements, bytes(), tensor});
    return static_cast<int>(program_.buffers.size()) - 1;
  }

  int AddMemory(const std::string& name, Level level, int64_t elements) {
    int64_t* size = level == Level::kWorkspace    ? &program_.workspace_bytes
                    : level == Level::kPersistent ? &program_.persistent_bytes
                                                  : &scratch_bytes_;
    program_.buffers.push_back({name, level, p_.type, elements, 64, -1, *size});
    *size += (elements * bytes() + 63) / 64 * 64;
    return static_cast<int>(program_.buffers.size()) - 1;
  }

  // Elements of one packed side, per position of the outer loops that it depends on.
  int64_t PackedSlab(const Side& side) const {
    return CeilDiv(p_.depth.extent, k_.kc) * k_.kc * CeilDiv(side.axis->extent, side.tile) *
           side.tile;
  }

  int64_t PackedElements(const Side& side) const {
    if (side.pack == Pack::kBlock) return side.block * k_.kc;
    int64_t elements = PackedSlab(side);
    for (const ProblemAxis& axis : p_.outer_depth) elements *= axis.extent;
    for (const ProblemAxis& axis : p_.outer) elements *= side.Stride(axis) != 0 ? axis.extent : 1;
    return elements;
  }

  void MakeSides() {
    a_ = {true, &p_.row, row_, k_.mr, k_.mc, p_.a_offset, -1, -1, k_.pack_a, p_.a_constant};
    b_ = {false, &p_.column, column_, k_.nr, k_.nc, p_.b_offset, -1, -1, k_.pack_b, p_.b_constant};
    if (empty_sum_) return;
    for (Side* side : {&a_, &b_}) {
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

  void MakePlaces() {
    c_ = AddTensor("C", p_.c, p_.spans[2]);
    for (size_t x = 0; x < p_.operands.size(); ++x) {
      operands_.push_back(
          AddTensor(absl::StrCat("X", x), p_.operands[x].tensor, p_.operand_spans[x]));
    }
    // Sums between passes rest in the output itself, unless something else lives there or they are
    // summed in parts; or densely in scratch.
    sums_ = partial_ = c_;
    if (empty_sum_) return;
    if (k_.split > 1 || (passes_ > 1 && p_.aliased && !k_.sums_in_scratch)) {
      partial_slab_ = p_.row.extent * p_.column.extent * p_.OuterCount();
      partial_ = AddMemory("partial", Level::kWorkspace, partial_slab_ * k_.split);
      sums_ = partial_;
    }
    if (passes_ > 1 && k_.sums_in_scratch)
      sums_ = AddMemory("sums", Level::kScratch, k_.mc * k_.nc);
  }

  // ---- views ----

  using Terms = std::vector<std::pair<int, int64_t>>;
  static void Term(Terms& terms, int loop, int64_t factor) {
    if (loop >= 0 && factor != 0) terms.push_back({loop, factor});
  }

  // Follows the outer loops by `stride(axis)` elements per unit.
  template <typename Stride>
  void OuterTerms(const Step& step, const Nest& nest, Terms& terms, const Stride& stride) const {
    for (size_t i = 0; i < p_.outer.size(); ++i) {
      const int loop = nest.outer[i];
      Term(terms, loop, loop < 0 ? 0 : stride(i) * step.loops[loop].step);
      Term(terms, nest.outer_inside[i], stride(i));
    }
  }

  // The output's tile here, or a place laid out like it.
  View PlaceView(const Step& step, const Nest& nest, int buffer, int64_t offset,
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

  View OutputView(const Step& step, const Nest& nest) const {
    std::vector<int64_t> outer;
    for (const ProblemAxis& axis : p_.outer) outer.push_back(axis.c);
    return PlaceView(step, nest, c_, 0, outer, p_.row.c, p_.column.c);
  }

  View PartialView(const Step& step, const Nest& nest) const {
    if (partial_ == c_) return OutputView(step, nest);
    std::vector<int64_t> outer(p_.outer.size());
    int64_t slab = p_.row.extent * p_.column.extent;
    for (size_t i = p_.outer.size(); i-- > 0;) {
      outer[i] = slab;
      slab *= p_.outer[i].extent;
    }
    View view = PlaceView(step, nest, partial_, 0, outer, p_.column.extent, 1);
    Term(view.loops, nest.part, slab);
    return view;
  }

  // Where a tile's sum rests between passes; in scratch, tile by tile.
  View SumsView(const Step& step, const Nest& nest) const {
    if (sums_ == partial_) return PartialView(step, nest);
    View view{sums_, 0, {}, {k_.nr, 1}};
    Term(view.loops, nest.m1, k_.mr * k_.nc);
    Term(view.loops, nest.n1, k_.mr * k_.nr);
    return view;
  }

  std::vector<View> OperandViews(const Step& step, const Nest& nest) const {
    std::vector<View> views;
    for (size_t x = 0; x < operands_.size(); ++x) {
      std::vector<int64_t> outer;
      for (const ProblemAxis& axis : p_.outer) outer.push_back(axis.operands[x]);
      views.push_back(PlaceView(step, nest, operands_[x], p_.operands[x].offset, outer,
                                p_.row.operands[x], p_.column.operands[x]));
    }
    return views;
  }

  // The tensor at (position on the side's axis, depth); `inside` walks the axis within a block.
  View SourceView(const Step& step, const Nest& nest, const Side& side, int block,
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
  View PackedView(const Step& step, const Nest& nest, const Side& side, int block,
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

  // ---- steps ----

  // for panels: copy. Rows of the source that are contiguous along the panel are read a few at a
  // time, across all panels.
  Statement PackLoops(Step& step, const Nest& nest, const Side& side, int block,
                      int64_t block_span) const {
    const std::string name = side.is_a ? "a" : "b";
    const int panel = AddLoop(step, absl::StrCat(side.is_a ? "m" : "n", "p"), side.axis_id,
                              side.tile, block_span);
    const bool rows = side.Stride(*side.axis) == 1 && side.axis->extent > side.tile &&
                      k_.kc > kPackRows && k_.kc % kPackRows == 0;
    const int64_t depth = rows ? kPackRows : k_.kc;
    View source = SourceView(step, nest, side, block, panel),
         target = PackedView(step, nest, side, block, panel);
    int chunk = -1;
    if (rows) {
      chunk = AddLoop(step, "kp", depth_, depth, k_.kc);
      Term(source.loops, chunk, side.Stride(p_.depth) * depth);
      Term(target.loops, chunk, side.tile * depth);
    }
    source.strides = {side.Stride(p_.depth), side.Stride(*side.axis)};
    target.strides = {side.tile, 1};
    Copy copy{absl::StrCat("pack ", name),
              {{depth_, depth}, {side.axis_id, side.tile, true}},
              target,
              source};
    For panels{panel, {std::move(copy)}};
    if (!rows) return panels;
    return For{chunk, {std::move(panels)}};
  }

  // Panels of one block. Where rows of the source are contiguous across panels, a block reads long
  // pieces of them, unless that leaves too few blocks for the threads.
  int64_t PackGroup(const Side& side, int64_t panel_bytes) const {
    const int64_t fit = std::max<int64_t>(1, kPackBlockBytes / panel_bytes);
    if (side.Stride(*side.axis) != 1) return fit;
    const int64_t all =
        CeilDiv(side.axis->extent, side.tile) * CeilDiv(p_.depth.extent, k_.kc) * p_.OuterCount();
    const int64_t fair = std::max<int64_t>(1, all / (4 * limits_.threads));
    return std::max(fit, std::min(fair, CeilDiv(kPackRunBytes, side.tile * bytes())));
  }

  void PackStep(const Side& side) {
    Step step;
    step.name = side.is_a ? "pack_a" : "pack_b";
    step.kind = side.constant ? StepKind::kPrepack : StepKind::kKernel;
    Nest nest;
    const int64_t panel_bytes = k_.kc * side.tile * bytes();
    const int64_t group = PackGroup(side, panel_bytes) * side.tile;
    const int block =
        AddLoop(step, side.is_a ? "m0" : "n0", side.axis_id, group, side.axis->extent);
    nest.k0 = AddLoop(step, "k0", depth_, k_.kc, p_.depth.extent);
    step.grid = {block, nest.k0};
    for (size_t i = 0; i < p_.outer_depth.size(); ++i) {
      nest.outer_depth.push_back(
          AddLoop(step, p_.outer_depth[i].name, outer_depth_[i], 1, p_.outer_depth[i].extent));
      step.grid.push_back(nest.outer_depth.back());
    }
    for (size_t i = 0; i < p_.outer.size(); ++i) {
      nest.outer.push_back(-1);
      nest.outer_inside.push_back(-1);
      if (side.Stride(p_.outer[i]) == 0) continue;
      nest.outer[i] = AddLoop(step, p_.outer[i].name, outer_[i], 1, p_.outer[i].extent);
      step.grid.push_back(nest.outer[i]);
    }
    step.body.push_back(PackLoops(step, nest, side, block, group));
    program_.steps.push_back(std::move(step));
  }

  // Grid and outer loops of a step that covers the output in blocks of `rows` x `columns`.
  Nest MakeGrid(Step& step, int64_t rows, int64_t columns, int64_t group) const {
    Nest nest;
    nest.m0 = AddLoop(step, "m0", row_, rows, p_.row.extent);
    nest.n0 = AddLoop(step, "n0", column_, columns, p_.column.extent);
    step.grid =
        k_.columns_first ? std::vector<int>{nest.n0, nest.m0} : std::vector<int>{nest.m0, nest.n0};
    for (size_t i = 0; i < p_.outer.size(); ++i) {
      const bool last = i + 1 == p_.outer.size();
      const int64_t size = last ? group : 1;
      nest.outer.push_back(AddLoop(step, p_.outer[i].name + (size > 1 ? "_0" : ""), outer_[i], size,
                                   p_.outer[i].extent));
      nest.outer_inside.push_back(
          size > 1 ? AddLoop(step, p_.outer[i].name + "_1", outer_[i], 1, size) : -1);
    }
    for (size_t i = p_.outer.size(); i-- > 0;) step.grid.push_back(nest.outer[i]);
    return nest;
  }

  Tile MakeTile(const std::string& name) const {
    Tile tile;
    tile.name = name;
    tile.type = p_.type;
    tile.rows = {row_, k_.mr};
    tile.columns = {column_, k_.nr};
    tile.lanes = limits_.lanes;
    return tile;
  }

  void ProductStep() {
    Step step;
    step.name = "product";
    Nest nest = MakeGrid(step, k_.mc, k_.nc, k_.group);
    if (k_.split > 1) {
      nest.part = AddLoop(step, "part", depth_, part_, p_.depth.extent);
      step.grid.push_back(nest.part);
    }
    for (size_t i = 0; i < p_.outer_depth.size() && !empty_sum_; ++i) {
      nest.outer_depth.push_back(
          AddLoop(step, p_.outer_depth[i].name, outer_depth_[i], 1, p_.outer_depth[i].extent));
    }
    if (!empty_sum_) nest.k0 = AddLoop(step, "k0", depth_, k_.kc, part_);
    nest.m1 = AddLoop(step, "m1", row_, k_.mr, k_.mc);
    nest.n1 = AddLoop(step, "n1", column_, k_.nr, k_.nc);

    std::vector<Statement> body;
    for (Side* side : {&a_, &b_}) {
      if (side->pack == Pack::kBlock)
        body.push_back(PackLoops(step, nest, *side, side->is_a ? nest.m0 : nest.n0, side->block));
    }
    const int outside = k_.rows_outside ? nest.m1 : nest.n1,
              inside = k_.rows_outside ? nest.n1 : nest.m1;
    body.push_back(For{outside, {For{inside, {ProductTile(step, nest)}}}});
    if (nest.k0 >= 0) body = {For{nest.k0, std::move(body)}};
    for (size_t i = nest.outer_depth.size(); i-- > 0;)
      body = {For{nest.outer_depth[i], std::move(body)}};
    if (!nest.outer_inside.empty() && nest.outer_inside.back() >= 0)
      body = {For{nest.outer_inside.back(), std::move(body)}};
    step.body = std::move(body);
    program_.steps.push_back(std::move(step));
  }

  View ProductOperand(const Step& step, const Nest& nest, const Side& side) const {
    const int block = side.is_a ? nest.m0 : nest.n0, inside = side.is_a ? nest.m1 : nest.n1;
    const bool packed = side.packed >= 0;
    View view = packed ? PackedView(step, nest, side, block, inside)
                       : SourceView(step, nest, side, block, inside);
    const int64_t along = packed ? 1 : side.Stride(*side.axis),
                  deep = packed ? side.tile : side.Stride(p_.depth);
    view.strides =
        side.is_a ? std::vector<int64_t>{along, deep} : std::vector<int64_t>{deep, along};
    return view;
  }

  Tile ProductTile(const Step& step, const Nest& nest) const {
    Tile tile = MakeTile("product");
    tile.instruction =
        k_.lanes == Lanes::kDepth ? tile::Instruction::kDot : tile::Instruction::kOuter;
    tile.padded = b_.packed >= 0;
    tile.resume = p_.fixed_order;
    if (!empty_sum_) {
      tile::Product product{ProductOperand(step, nest, a_), ProductOperand(step, nest, b_), depth_,
                            k_.kc, static_cast<int>(k_.unroll)};
      if (k_.prefetch > 0) {
        product.prefetch = k_.kc * k_.nr;  // the panel after this one
        product.prefetch_level = static_cast<int>(k_.prefetch);
      }
      tile.products.push_back(std::move(product));
    }
    const bool several = !empty_sum_ && passes_ > 1;
    if (several) tile.joins.push_back({SumsView(step, nest), When::kNotFirst});
    tile::Store result{OutputView(step, nest), When::kAlways, p_.epilogue,
                       OperandViews(step, nest)};
    if (k_.split > 1) result = {PartialView(step, nest), When::kAlways, {}, {}};
    if (several && (sums_ != (k_.split > 1 ? partial_ : c_) || !result.value.nodes.empty())) {
      tile.stores.push_back({SumsView(step, nest), When::kNotLast, {}, {}});
      result.when = When::kLast;
    }
    tile.stores.push_back(std::move(result));
    return tile;
  }

  // C = epilogue(sum over the parts).
  void SumStep() {
    Step step;
    step.name = "sum";
    const int64_t blocks = 4 * limits_.threads;
    const int64_t rows = CeilDiv(CeilDiv(p_.row.extent, blocks), k_.mr) * k_.mr;
    Nest nest = MakeGrid(step, rows, CeilDiv(p_.column.extent, k_.nr) * k_.nr, 1);
    nest.m1 = AddLoop(step, "m1", row_, k_.mr, rows);
    nest.n1 = AddLoop(step, "n1", column_, k_.nr, CeilDiv(p_.column.extent, k_.nr) * k_.nr);
    Tile tile = MakeTile("sum");
    tile.joins.push_back({PartialView(step, nest), When::kAlways, k_.split, partial_slab_});
    tile.stores.push_back(
        {OutputView(step, nest), When::kAlways, p_.epilogue, OperandViews(step, nest)});
    step.body.push_back(For{nest.m1, {For{nest.n1, {std::move(tile)}}}});
    program_.steps.push_back(std::move(step));
  }

  const Problem& p_;
  const Limits& limits_;
  const Knobs& k_;
  tile::Program program_;
  int row_ = -1, column_ = -1, depth_ = -1;
  std::vector<int> outer_, outer_depth_;
  int64_t part_ = 1, passes_ = 1, scratch_bytes_ = 0, partial_slab_ = 0;
  bool empty_sum_ = false;
  Side a_, b_;
  int c_ = -1, partial_ = -1, sums_ = -1;
  std::vector<int> operands_;
};

}  // namespace

std::string TitleOf(const Problem& p) {
  std::string text = absl::StrCat("C[", p.row.extent, ",", p.column.extent, "] = A[", p.row.extent,
                                  ",", p.depth.extent, "] * B[", p.depth.extent, ",",
                                  p.column.extent, "], ", Print(p.type));
  if (p.OuterCount() != 1) absl::StrAppend(&text, ", ", p.OuterCount(), " times");
  if (!p.trivial) absl::StrAppend(&text, ", with an epilogue");
  return text;
}

tile::Program BuildProgram(const Problem& problem, const Limits& limits, const Knobs& knobs,
                           const std::string& schedule) {
  return Builder(problem, limits, knobs).Run(schedule);
}

}  // namespace kiln::compiler::contraction
