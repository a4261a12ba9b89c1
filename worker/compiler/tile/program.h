// SPDX-License-Identifier: Apache-2.0
// The tile program: what a schedule turns a workload into, near the device and still free of any
// language. Families build it, check.h proves it legal, counts.h counts what it does, emit/ prints
// it as C++ (and later CUDA C++). Plain data; print.h has its text.
//
// A step is a grid of independent blocks; steps follow one another. Inside a block, loops walk
// logical *axes* in steps: a loop covers what the loops around it over the same axis left, so that
// the position on an axis is the sum of their variables. Buffers live at a level; a view is a
// linear map from loop iterations and tile coordinates to a buffer's elements. What lies beyond an
// axis's extent is never accessed: copies fill it with zeros, stores leave it alone. All extents
// are static.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "proto/contract/dtype.h"
#include "proto/contract/graph.h"

namespace kiln::compiler::tile {

enum class Level : uint8_t {
  kGlobal,      // a tensor of the workload
  kWorkspace,   // lives for one launch, shared by all steps
  kPersistent,  // filled by prepack steps, lives as long as the plan
  kScratch,     // of one thread (CPU) or one block (GPU), contents undefined when a block begins
};

struct Buffer {
  std::string name;
  Level level = Level::kGlobal;
  DType type = DType::kF32;
  int64_t elements = 0;   // size; of a tensor, its span
  int64_t alignment = 1;  // bytes that its first element is aligned to
  int tensor = -1;        // kGlobal: of the graph
  int64_t base =
      0;  // other levels: bytes from the start of the level's memory (scratch: of the step's)
};

struct Axis {
  std::string name;
  int64_t extent = 1;
  bool reduced = false;  // summed over
};

// Takes the values 0, step, 2*step, ... below min(span, what is left of the axis here).
struct Loop {
  std::string name;
  int axis = -1;
  int64_t step = 1;
  int64_t span = 1;
};

// Elements of a buffer, reached from a statement: offset + sum of (iteration number * factor) over
// loops + sum of (coordinate * stride) over the statement's tile dimensions.
struct View {
  int buffer = -1;
  int64_t offset = 0;
  std::vector<std::pair<int, int64_t>>
      loops;                     // loop of the step, elements per iteration; each at most once
  std::vector<int64_t> strides;  // one per tile dimension
};

struct TileDim {
  int axis = -1;
  int64_t size = 1;
  bool padded = false;  // not clipped: coordinates beyond the axis's extent exist in the buffer
                        // (and hold zeros)
};

// When a statement acts, by the serial loops around it over reduced axes.
enum class When : uint8_t { kAlways, kNotFirst, kNotLast, kLast };

// An element-wise tree over a fragment's element and operands at the same place. Arguments come
// before users; the last node is the result.
struct Expression {
  enum class Source : uint8_t { kAccumulator, kOperand, kLiteral, kOperation };
  struct Node {
    Source source = Source::kOperation;
    Op op = Op::kAdd;          // kOperation
    DType type = DType::kF32;  // of the value
    std::vector<int> args;     // kOperation
    int operand = -1;          // kOperand
    double number = 0;         // kLiteral of a float type
    int64_t integer = 0;       // kLiteral of another type
  };
  std::vector<Node> nodes;  // empty: the accumulator itself
};

// acc[r][c] += sum over p < depth of a[r][p] * b[p][c], in ascending p.
struct Product {
  View a;             // tile dimensions: row, p
  View b;             // tile dimensions: p, column
  int axis = -1;      // that p runs over
  int64_t depth = 1;  // clipped to what is left of the axis
  int unroll = 1;
  int64_t prefetch = 0;    // elements that b is prefetched ahead by; 0: not
  int prefetch_level = 0;  // 1: first level of cache, 2: second
};

// acc[r][c] += sum over i < count of source[r][c][i].
struct Join {
  View source;  // tile dimensions: row, column
  When when = When::kAlways;
  int64_t count = 1, stride = 0;
};

struct Store {
  View target;  // tile dimensions: row, column
  When when = When::kAlways;
  Expression value;
  std::vector<View> operands;
};

// Which instruction the product is made of.
enum class Instruction : uint8_t {
  kOuter,  // lanes along the columns: a broadcast, b a vector
  kDot,    // lanes along p, added up at the end
};

// A register fragment of rows x columns and what happens to it: it starts at zero (or, with
// `resume`, at the joined values, which keeps one order of summation whatever the blocking), takes
// the product, then the joins, then is stored.
struct Tile {
  std::string name;
  DType type = DType::kF32;
  TileDim rows, columns;
  Instruction instruction = Instruction::kOuter;
  int lanes = 1;        // elements of a vector register
  bool padded = false;  // b holds zeros beyond the column axis's extent, up to whole vectors
  bool resume = false;
  std::vector<Product> products;  // none (an empty sum) or one
  std::vector<Join> joins;
  std::vector<Store> stores;
};

// target[x..] = source[x..] over a box; zero where the coordinate of a padded dimension lies beyond
// its axis.
struct Copy {
  std::string name;
  std::vector<TileDim> dims;  // outermost first
  View target, source;
};

struct For;
using Statement = std::variant<For, Copy, Tile>;

struct For {
  int loop = -1;
  std::vector<Statement> body;
};

// C = A * B by a vendor's routine; numbers as proto/contract/plan.h has them.
struct LibraryCall {
  std::string routine;
  int a = -1, b = -1, c = -1;                        // buffers
  int64_t a_offset = 0, b_offset = 0, c_offset = 0;  // in elements
  std::vector<int64_t> numbers;                      // trans_a .. batch_stride_c
};

enum class StepKind : uint8_t { kKernel, kPrepack, kLibrary };

struct Step {
  std::string name;  // part of the entry's name
  StepKind kind = StepKind::kKernel;
  std::vector<Loop> loops;
  std::vector<int> grid;        // loops that number the blocks, the fastest first
  std::vector<Statement> body;  // of one block
  LibraryCall call;             // kLibrary
};

struct Program {
  std::string title;     // what it computes, for people: "C[1024,1024] = A[1024,512] * B[512,1024]"
  std::string schedule;  // its text
  std::vector<Axis> axes;
  std::vector<Buffer> buffers;  // used ones
  std::vector<Step> steps;      // none: nothing is to be computed
  int64_t workspace_bytes = 0, persistent_bytes = 0;
};

int64_t CeilDiv(int64_t value, int64_t divisor);

// Iterations of a loop at the start of its axis (the most that it can have).
int64_t Iterations(const Program& program, const Loop& loop);

// The number of blocks of a step.
int64_t Blocks(const Program& program, const Step& step);

// Bytes of scratch that a block of the step uses.
int64_t ScratchBytes(const Program& program, const Step& step);

// Sizes that a tile dimension has after clipping: the full one, the tail, or both, the full one
// first.
std::vector<int64_t> ClippedSizes(const Program& program, const TileDim& dim);

// Calls `visit(statement, enclosing loops outermost first)` for every Copy and Tile of a step; the
// grid's loops come first.
template <typename Visit>
void ForEachLeaf(const std::vector<Statement>& body, std::vector<int>& around, const Visit& visit) {
  for (const Statement& statement : body) {
    if (const For* loop = std::get_if<For>(&statement)) {
      around.push_back(loop->loop);
      ForEachLeaf(loop->body, around, visit);
      around.pop_back();
    } else {
      visit(statement, around);
    }
  }
}

template <typename Visit>
void ForEachLeaf(const Step& step, const Visit& visit) {
  std::vector<int> around(step.grid.rbegin(), step.grid.rend());
  ForEachLeaf(step.body, around, visit);
}

// Calls `visit(view, dims, writes)` for every view of a leaf.
template <typename Visit>
void ForEachView(const Statement& leaf, const Visit& visit) {
  if (const Copy* copy = std::get_if<Copy>(&leaf)) {
    std::vector<TileDim> clipped = copy->dims;
    for (TileDim& dim : clipped) dim.padded = false;
    visit(copy->source, clipped, false);
    visit(copy->target, copy->dims, true);
  } else if (const Tile* tile = std::get_if<Tile>(&leaf)) {
    const std::vector<TileDim> place{tile->rows, tile->columns};
    for (const Product& product : tile->products) {
      const TileDim p{product.axis, product.depth};
      TileDim columns = tile->columns;
      columns.padded = tile->padded;
      visit(product.a, std::vector<TileDim>{tile->rows, p}, false);
      visit(product.b, std::vector<TileDim>{p, columns}, false);
    }
    for (const Join& join : tile->joins) visit(join.source, place, false);
    for (const Store& store : tile->stores) {
      for (const View& operand : store.operands) visit(operand, place, false);
      visit(store.target, place, true);
    }
  }
}

}  // namespace kiln::compiler::tile
