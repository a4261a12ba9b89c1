// SPDX-License-Identifier: Apache-2.0
#include "worker/compiler/families/contraction/build.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "worker/compiler/families/contraction/layout.h"

namespace kiln::compiler::contraction {
namespace {

using tile::CeilDiv;
using tile::Copy;
using tile::For;
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

class Builder {
 public:
  Builder(const Problem& problem, const Limits& limits, const Knobs& knobs, tile::Program* program)
      : p_(problem), limits_(limits), k_(knobs), program_(*program), l_(problem, knobs, program) {}

  void Run() {
    for (const Side* side : {&l_.a, &l_.b}) {
      if (side->pack == Pack::kStep) PackStep(*side);
    }
    ProductStep();
    if (k_.split > 1) SumStep();
  }

 private:
  int64_t bytes() const { return Bits(p_.type) / 8; }
  int AddLoop(Step& step, const std::string& name, int axis, int64_t step_size,
              int64_t span) const {
    step.loops.push_back({name, axis, step_size, span});
    return static_cast<int>(step.loops.size()) - 1;
  }

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
    View source = l_.SourceView(step, nest, side, block, panel),
         target = l_.PackedView(step, nest, side, block, panel);
    int chunk = -1;
    if (rows) {
      chunk = AddLoop(step, "kp", l_.depth, depth, k_.kc);
      Layout::Term(source.loops, chunk, side.Stride(p_.depth) * depth);
      Layout::Term(target.loops, chunk, side.tile * depth);
    }
    source.strides = {side.Stride(p_.depth), side.Stride(*side.axis)};
    target.strides = {side.tile, 1};
    Copy copy{absl::StrCat("pack ", name),
              {{l_.depth, depth}, {side.axis_id, side.tile, true}},
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
    nest.k0 = AddLoop(step, "k0", l_.depth, k_.kc, p_.depth.extent);
    step.grid = {block, nest.k0};
    for (size_t i = 0; i < p_.outer_depth.size(); ++i) {
      nest.outer_depth.push_back(
          AddLoop(step, p_.outer_depth[i].name, l_.outer_depth[i], 1, p_.outer_depth[i].extent));
      step.grid.push_back(nest.outer_depth.back());
    }
    for (size_t i = 0; i < p_.outer.size(); ++i) {
      nest.outer.push_back(-1);
      nest.outer_inside.push_back(-1);
      if (side.Stride(p_.outer[i]) == 0) continue;
      nest.outer[i] = AddLoop(step, p_.outer[i].name, l_.outer[i], 1, p_.outer[i].extent);
      step.grid.push_back(nest.outer[i]);
    }
    step.body.push_back(PackLoops(step, nest, side, block, group));
    program_.steps.push_back(std::move(step));
  }

  // Grid and outer loops of a step that covers the output in blocks of `rows` x `columns`.
  Nest MakeGrid(Step& step, int64_t rows, int64_t columns, int64_t group) const {
    Nest nest;
    nest.m0 = AddLoop(step, "m0", l_.row, rows, p_.row.extent);
    nest.n0 = AddLoop(step, "n0", l_.column, columns, p_.column.extent);
    step.grid =
        k_.columns_first ? std::vector<int>{nest.n0, nest.m0} : std::vector<int>{nest.m0, nest.n0};
    for (size_t i = 0; i < p_.outer.size(); ++i) {
      const bool last = i + 1 == p_.outer.size();
      const int64_t size = last ? group : 1;
      nest.outer.push_back(AddLoop(step, p_.outer[i].name + (size > 1 ? "_0" : ""), l_.outer[i],
                                   size, p_.outer[i].extent));
      nest.outer_inside.push_back(
          size > 1 ? AddLoop(step, p_.outer[i].name + "_1", l_.outer[i], 1, size) : -1);
    }
    for (size_t i = p_.outer.size(); i-- > 0;) step.grid.push_back(nest.outer[i]);
    return nest;
  }

  Tile MakeTile(const std::string& name) const {
    Tile tile;
    tile.name = name;
    tile.type = p_.type;
    tile.rows = {l_.row, k_.mr};
    tile.columns = {l_.column, k_.nr};
    tile.lanes = limits_.lanes;
    return tile;
  }

  void ProductStep() {
    Step step;
    step.name = "product";
    Nest nest = MakeGrid(step, k_.mc, k_.nc, k_.group);
    if (k_.split > 1) {
      nest.part = AddLoop(step, "part", l_.depth, l_.part, p_.depth.extent);
      step.grid.push_back(nest.part);
    }
    for (size_t i = 0; i < p_.outer_depth.size() && !l_.empty_sum; ++i) {
      nest.outer_depth.push_back(
          AddLoop(step, p_.outer_depth[i].name, l_.outer_depth[i], 1, p_.outer_depth[i].extent));
    }
    if (!l_.empty_sum) nest.k0 = AddLoop(step, "k0", l_.depth, k_.kc, l_.part);
    nest.m1 = AddLoop(step, "m1", l_.row, k_.mr, k_.mc);
    nest.n1 = AddLoop(step, "n1", l_.column, k_.nr, k_.nc);

    std::vector<Statement> body;
    for (const Side* side : {&l_.a, &l_.b}) {
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
    View view = packed ? l_.PackedView(step, nest, side, block, inside)
                       : l_.SourceView(step, nest, side, block, inside);
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
    tile.padded = l_.b.packed >= 0;
    tile.resume = p_.fixed_order;
    if (!l_.empty_sum) {
      tile::Product product{ProductOperand(step, nest, l_.a), ProductOperand(step, nest, l_.b),
                            l_.depth, k_.kc, static_cast<int>(k_.unroll)};
      if (k_.prefetch > 0) {
        product.prefetch = k_.kc * k_.nr;  // the panel after this one
        product.prefetch_level = static_cast<int>(k_.prefetch);
      }
      tile.products.push_back(std::move(product));
    }
    const bool several = !l_.empty_sum && l_.passes > 1;
    if (several) tile.joins.push_back({l_.SumsView(step, nest), When::kNotFirst});
    tile::Store result{l_.OutputView(step, nest), When::kAlways, p_.epilogue,
                       l_.OperandViews(step, nest)};
    if (k_.split > 1) result = {l_.PartialView(step, nest), When::kAlways, {}, {}};
    if (several && (l_.sums != (k_.split > 1 ? l_.partial : l_.c) || !result.value.nodes.empty())) {
      tile.stores.push_back({l_.SumsView(step, nest), When::kNotLast, {}, {}});
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
    nest.m1 = AddLoop(step, "m1", l_.row, k_.mr, rows);
    nest.n1 = AddLoop(step, "n1", l_.column, k_.nr, CeilDiv(p_.column.extent, k_.nr) * k_.nr);
    Tile tile = MakeTile("sum");
    tile.joins.push_back({l_.PartialView(step, nest), When::kAlways, k_.split, l_.partial_slab});
    tile.stores.push_back(
        {l_.OutputView(step, nest), When::kAlways, p_.epilogue, l_.OperandViews(step, nest)});
    step.body.push_back(For{nest.m1, {For{nest.n1, {std::move(tile)}}}});
    program_.steps.push_back(std::move(step));
  }

  const Problem& p_;
  const Limits& limits_;
  const Knobs& k_;
  tile::Program& program_;
  const Layout l_;
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
  tile::Program program;
  program.title = TitleOf(problem);
  program.schedule = schedule;
  if (!problem.empty()) Builder(problem, limits, knobs, &program).Run();
  return program;
}

}  // namespace kiln::compiler::contraction
