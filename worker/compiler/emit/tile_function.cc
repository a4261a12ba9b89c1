// SPDX-License-Identifier: Apache-2.0
#include "worker/compiler/emit/tile_function.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "worker/compiler/emit/text.h"

namespace kiln::compiler::emit {
namespace {

using tile::Instruction;
using tile::Join;
using tile::Product;
using tile::Store;
using tile::Tile;
using tile::View;
using tile::When;

// Columns of a tile that one register holds.
struct Chunk {
  int64_t column = 0;
  int lanes = 1;      // of the register
  int64_t valid = 1;  // of them
};

// Whole vectors; what is left is computed by narrower ones, or, where b is padded, by one that is
// stored in part.
std::vector<Chunk> ChunksOf(const Tile& tile, int64_t columns) {
  std::vector<Chunk> chunks;
  int width = tile.lanes;
  for (int64_t column = 0; column < columns;) {
    if (!tile.padded) {
      while (width > columns - column) width /= 2;
    }
    chunks.push_back({column, width, std::min<int64_t>(width, columns - column)});
    column += width;
  }
  return chunks;
}

bool SameView(const View& x, const View& y) {
  return x.buffer == y.buffer && x.offset == y.offset && x.loops == y.loops &&
         x.strides == y.strides;
}

class Writer {
 public:
  Writer(const Tile& tile, const TileSignature& signature, int64_t rows, int64_t columns,
         const std::vector<std::string>& values, std::vector<int>* lanes)
      : tile_(tile),
        signature_(signature),
        rows_(rows),
        columns_(columns),
        values_(values),
        lanes_(lanes),
        real_(RealName(tile.type)),
        dot_(tile.instruction == Instruction::kDot) {
    if (dot_) {
      for (int64_t c = 0; c < columns; ++c) chunks_.push_back({c, 1, 1});
      lanes_->push_back(tile.lanes);
    } else {
      chunks_ = ChunksOf(tile, columns);
    }
    for (const Chunk& chunk : chunks_) lanes_->push_back(chunk.lanes);
  }

  std::string Run() {
    Head();
    if (!dot_ && !tile_.resume) PrefetchPlace(tile_.stores.front().target);
    if (tile_.products.empty() || !dot_) Declare();
    if (tile_.resume) Joins();
    for (const Product& product : tile_.products) dot_ ? Dot(product) : Outer(product);
    if (!tile_.resume) Joins();
    Stores();
    return absl::StrCat(out_, "}\n\n");
  }

 private:
  static std::string Acc(int64_t row, size_t chunk) { return absl::StrCat("c", row, "_", chunk); }
  std::string Type(const Chunk& chunk) const { return VectorName(tile_.type, chunk.lanes); }
  void Line(absl::string_view text) { absl::StrAppend(&out_, indent_, text, "\n"); }

  void Head() {
    absl::StrAppend(&out_, "static __attribute__((noinline)) void ",
                    TileFunctionName(tile_, rows_, columns_), "(");
    std::string comma;
    for (size_t i = 0; i < signature_.pointers.size(); ++i) {
      absl::StrAppend(&out_, comma, signature_.written[i] ? "" : "const ", real_, "* ",
                      signature_.pointers[i].first);
      comma = ", ";
    }
    if (signature_.depth) absl::StrAppend(&out_, comma, "index depth");
    if (signature_.first) absl::StrAppend(&out_, ", bool first");
    if (signature_.last) absl::StrAppend(&out_, ", bool last");
    out_ += ") {\n";
  }

  // Asks for the rows of C before the product, so that they are there after it.
  void PrefetchPlace(const View& view) {
    if (tile_.products.empty() || view.strides[1] != 1) return;
    const int64_t line = 64 / (Bits(tile_.type) / 8);
    for (int64_t row = 0; row < rows_; ++row) {
      for (int64_t column = 0; column < columns_; column += line) {
        Line(absl::StrCat("__builtin_prefetch(", signature_.Of(view), " + ",
                          row * view.strides[0] + column, ");"));
      }
    }
  }

  void Declare() {
    for (int64_t row = 0; row < rows_; ++row) {
      for (size_t i = 0; i < chunks_.size(); ++i)
        Line(absl::StrCat(Type(chunks_[i]), " ", Acc(row, i), " = {};"));
    }
  }

  std::string DepthText(const Product& product) const {
    return signature_.depth ? "depth" : absl::StrCat(product.depth);
  }

  void Outer(const Product& product) {
    const std::string a = "a", b = "b";
    if (product.unroll > 1) absl::StrAppend(&out_, "#pragma GCC unroll ", product.unroll, "\n");
    Line(absl::StrCat("for (index p = 0; p < ", DepthText(product), "; ++p, ", a,
                      " += ", product.a.strides[1], ", ", b, " += ", product.b.strides[0], ") {"));
    indent_ = "    ";
    if (product.prefetch != 0)
      Line(absl::StrCat("__builtin_prefetch(", b, " + ", product.prefetch, ", 0, ",
                        product.prefetch_level == 1 ? 3 : 2, ");"));
    for (size_t i = 0; i < chunks_.size(); ++i) {
      Line(absl::StrCat("const ", Type(chunks_[i]), " b", i, " = load<", Type(chunks_[i]), ">(", b,
                        At(chunks_[i].column * product.b.strides[1]), ");"));
    }
    for (int64_t row = 0; row < rows_; ++row) {
      Line(absl::StrCat("const ", real_, " a", row, " = ", a, "[", row * product.a.strides[0],
                        "];"));
      for (size_t i = 0; i < chunks_.size(); ++i)
        Line(absl::StrCat(Acc(row, i), " += a", row, " * b", i, ";"));
    }
    indent_ = "  ";
    Line("}");
  }

  static std::string At(int64_t offset) { return offset == 0 ? "" : absl::StrCat(" + ", offset); }

  void Dot(const Product& product) {
    const std::string a = "a", b = "b";
    const std::string vector = VectorName(tile_.type, tile_.lanes), depth = DepthText(product);
    for (int64_t row = 0; row < rows_; ++row) {
      for (int64_t column = 0; column < columns_; ++column)
        Line(absl::StrCat(vector, " v", row, "_", column, " = {};"));
    }
    Line("index p = 0;");
    if (product.unroll > 1) absl::StrAppend(&out_, "#pragma GCC unroll ", product.unroll, "\n");
    Line(absl::StrCat("for (; p + ", tile_.lanes, " <= ", depth, "; p += ", tile_.lanes, ") {"));
    DotStep(product, vector, "v", a, b);
    Line("}");
    for (int64_t row = 0; row < rows_; ++row) {
      for (int64_t column = 0; column < columns_; ++column)
        Line(absl::StrCat(real_, " ", Acc(row, column), " = total(v", row, "_", column, ");"));
    }
    if (signature_.depth || product.depth % tile_.lanes != 0) {
      Line(absl::StrCat("for (; p < ", depth, "; ++p) {"));
      DotStep(product, real_, "c", a, b);
      Line("}");
    }
  }

  void DotStep(const Product& product, const std::string& type, const std::string& into,
               const std::string& a, const std::string& b) {
    indent_ = "    ";
    for (int64_t column = 0; column < columns_; ++column) {
      Line(absl::StrCat("const ", type, " b", column, " = load<", type, ">(", b, " + p",
                        At(column * product.b.strides[1]), ");"));
    }
    for (int64_t row = 0; row < rows_; ++row) {
      Line(absl::StrCat("const ", type, " a", row, " = load<", type, ">(", a, " + p",
                        At(row * product.a.strides[0]), ");"));
      for (int64_t column = 0; column < columns_; ++column) {
        Line(absl::StrCat(into, row, "_", column, " += a", row, " * b", column, ";"));
      }
    }
    indent_ = "  ";
  }

  // Runs `write` under the condition of `when`.
  template <typename Write>
  void Under(When when, const Write& write) {
    const absl::string_view condition = when == When::kNotFirst  ? "!first"
                                        : when == When::kNotLast ? "!last"
                                        : when == When::kLast    ? "last"
                                                                 : "";
    if (!condition.empty()) {
      Line(absl::StrCat("if (", condition, ") {"));
      indent_ = "    ";
    }
    write();
    if (!condition.empty()) {
      indent_ = "  ";
      Line("}");
    }
  }

  // A statement per register: its lanes in memory are contiguous, or there is one lane.
  template <typename Each>
  void ForEachRegister(const Each& each) {
    for (int64_t row = 0; row < rows_; ++row) {
      for (size_t i = 0; i < chunks_.size(); ++i) each(row, i, chunks_[i]);
    }
  }

  std::string Place(const View& view, int64_t row, const Chunk& chunk) const {
    return absl::StrCat(signature_.Of(view),
                        At(row * view.strides[0] + chunk.column * view.strides[1]));
  }

  // Whether a register's lanes are neighbours in memory.
  bool Contiguous(const View& view) const { return view.strides[1] == 1 || columns_ == 1 || dot_; }

  void Joins() {
    for (const Join& join : tile_.joins) {
      Under(join.when, [&] {
        const bool loop = join.count > 1;
        const std::string outer = indent_;
        if (loop) {
          Line(absl::StrCat("for (index s = 0; s < ", join.count, "; ++s, ",
                            signature_.Of(join.source), " += ", join.stride, ") {"));
          indent_ += "  ";
        }
        ForEachRegister([&](int64_t row, size_t i, const Chunk& chunk) {
          std::string from =
              absl::StrCat("load<", Type(chunk), ">(", Place(join.source, row, chunk), ")");
          if (!Contiguous(join.source)) {
            from = absl::StrCat("gather<", Type(chunk), ", ", chunk.valid, ", ",
                                join.source.strides[1], ">(", Place(join.source, row, chunk), ")");
          } else if (chunk.valid != chunk.lanes) {
            from = absl::StrCat("load<", Type(chunk), ", ", chunk.valid, ">(",
                                Place(join.source, row, chunk), ")");
          }
          Line(absl::StrCat(Acc(row, i), " += ", from, ";"));
        });
        indent_ = outer;
        if (loop) Line("}");
      });
    }
  }

  void Stores() {
    for (size_t s = 0; s < tile_.stores.size(); ++s) {
      const Store& store = tile_.stores[s];
      Under(store.when, [&] {
        if (values_[s].empty() && Contiguous(store.target)) {
          ForEachRegister([&](int64_t row, size_t i, const Chunk& chunk) {
            const std::string count =
                chunk.valid == chunk.lanes ? "" : absl::StrCat("<", chunk.valid, ">");
            Line(absl::StrCat("store", count, "(", Place(store.target, row, chunk), ", ",
                              Acc(row, i), ");"));
          });
        } else {
          StoreElements(store, values_[s]);
        }
      });
    }
  }

  // Through memory, element by element; the compiler makes vectors of it where the expression lets
  // it.
  void StoreElements(const Store& store, const std::string& value) {
    const Chunk& last = chunks_.back();
    const int64_t width = last.column + last.lanes;
    Line(absl::StrCat("alignas(64) ", real_, " tile[", rows_, "][", width, "];"));
    ForEachRegister([&](int64_t row, size_t i, const Chunk& chunk) {
      Line(absl::StrCat("store(&tile[", row, "][", chunk.column, "], ", Acc(row, i), ");"));
    });
    Line(absl::StrCat("for (index row = 0; row < ", rows_, "; ++row) {"));
    absl::StrAppend(&out_, "#ifndef __clang__\n#pragma GCC ivdep\n#endif\n");
    Line(absl::StrCat("  for (index column = 0; column < ", columns_, "; ++column) {"));
    std::string from = "tile[row][column]";
    if (!value.empty()) {
      std::string arguments = from;
      for (const View& operand : store.operands)
        absl::StrAppend(&arguments, ", ", Element(operand));
      from = absl::StrCat(value, "(", arguments, ")");
    }
    Line(absl::StrCat("    ", Element(store.target), " = ", from, ";"));
    Line("  }");
    Line("}");
  }

  std::string Element(const View& view) const {
    return absl::StrCat(signature_.Of(view), "[",
                        Sum({{"row", rows_ == 1 ? 0 : view.strides[0]},
                             {"column", columns_ == 1 ? 0 : view.strides[1]}},
                            0),
                        "]");
  }

  const Tile& tile_;
  const TileSignature& signature_;
  const int64_t rows_, columns_;
  const std::vector<std::string>& values_;
  std::vector<int>* lanes_;
  const std::string real_;
  const bool dot_;
  std::vector<Chunk> chunks_;
  std::string out_, indent_ = "  ";
};

}  // namespace

const std::string& TileSignature::Of(const View& view) const {
  // a and b of a product advance; nothing else is reached through them.
  for (size_t i = 2 * products; i < pointers.size(); ++i) {
    if (SameView(*pointers[i].second, view)) return pointers[i].first;
  }
  return pointers.front().first;
}

TileSignature SignatureOf(const tile::Program& program, const tile::Step& step, const Tile& tile,
                          const std::vector<int>& around) {
  TileSignature signature;
  signature.products = tile.products.size();
  auto add = [&](const View& view, const std::string& name, bool written) {
    for (size_t i = 2 * tile.products.size(); i < signature.pointers.size(); ++i) {
      if (!SameView(*signature.pointers[i].second, view)) continue;
      if (written) signature.written[i] = true;
      return;
    }
    signature.pointers.push_back({name, &view});
    signature.written.push_back(written);
  };
  for (const Product& product : tile.products) {
    // a and b advance; a pointer of their own each, even where they read one matrix.
    signature.pointers.push_back({"a", &product.a});
    signature.pointers.push_back({"b", &product.b});
    signature.written = {false, false};
    const Scope scope(program, step);
    signature.depth =
        scope.Remaining(product.axis, product.depth, around) != absl::StrCat(product.depth);
  }
  for (const Store& store : tile.stores) {
    add(store.target, store.when == When::kNotLast ? "partial" : "c", true);
    for (size_t x = 0; x < store.operands.size(); ++x)
      add(store.operands[x], absl::StrCat("x", x), false);
    signature.last |= store.when == When::kLast || store.when == When::kNotLast;
  }
  for (const Join& join : tile.joins) {
    add(join.source, "partial", false);
    signature.first |= join.when == When::kNotFirst;
  }
  return signature;
}

std::string TileFunctionName(const Tile& tile, int64_t rows, int64_t columns) {
  return absl::StrCat(tile.name, "_", rows, "x", columns);
}

std::string TileFunction(const Tile& tile, const TileSignature& signature, int64_t rows,
                         int64_t columns, const std::vector<std::string>& values,
                         std::vector<int>* lanes) {
  return Writer(tile, signature, rows, columns, values, lanes).Run();
}

}  // namespace kiln::compiler::emit
