// SPDX-License-Identifier: Apache-2.0
#include "worker/compiler/emit/cpp.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "worker/compiler/emit/expression.h"
#include "worker/compiler/emit/text.h"
#include "worker/compiler/emit/tile_function.h"
#include "worker/compiler/tile/reach.h"

namespace kiln::compiler::emit {
namespace {

using tile::Buffer;
using tile::Copy;
using tile::For;
using tile::Level;
using tile::Loop;
using tile::Program;
using tile::Statement;
using tile::Step;
using tile::StepKind;
using tile::Tile;
using tile::TileDim;
using tile::View;

constexpr char kRuntimeTypes[] =
    "// What the runtime calls an entry with.\n"
    "union kiln_arg { void* pointer; long long integer; double number; };\n"
    "struct kiln_block { long long index[3], grid[3]; void* shared; };\n\n";

// Loads and stores of whole and partial registers from any address.
constexpr char kMemory[] =
    "template <typename V, int count = 0, typename T> static inline V load(const T* from) {\n"
    "  V value = {};\n"
    "  __builtin_memcpy(&value, from, count == 0 ? sizeof(V) : count * sizeof(T));\n"
    "  return value;\n}\n"
    "template <int count = 0, typename T, typename V> static inline void store(T* to, V value) {\n"
    "  __builtin_memcpy(to, &value, count == 0 ? sizeof(V) : count * sizeof(T));\n}\n";

constexpr char kGather[] =
    "template <typename V, int count, int stride, typename T> static inline V gather(const T* "
    "from) {\n"
    "  T lanes[sizeof(V) / sizeof(T)] = {};\n"
    "  for (int i = 0; i < count; ++i) lanes[i] = from[(long long)i * stride];\n"
    "  return load<V>(lanes);\n}\n";

class Printer {
 public:
  Printer(const Program& program, const std::string& prefix) : program_(program), prefix_(prefix) {}

  std::string Run() {
    std::string steps;
    for (const Step& step : program_.steps) {
      if (step.kind != StepKind::kLibrary) absl::StrAppend(&steps, StepText(step));
    }
    std::string out =
        absl::StrCat("// ", program_.title, "\n// schedule: ", program_.schedule, "\n\n");
    if (steps.empty()) return out;
    out += kRuntimeTypes;
    absl::StrAppend(&out, "typedef ", wide_ ? "long long" : "int",
                    " index;   // as wide as the largest offset needs\n");
    std::sort(lanes_.begin(), lanes_.end());
    lanes_.erase(std::unique(lanes_.begin(), lanes_.end()), lanes_.end());
    for (int lanes : lanes_) {
      if (lanes == 1) continue;
      absl::StrAppend(&out, "typedef ", RealName(type_), " ", VectorName(type_, lanes),
                      " __attribute__((vector_size(", lanes * Bits(type_) / 8, ")));\n");
    }
    out += "\n";
    if (steps.find("smaller(") != std::string::npos)
      out += "static inline index smaller(index x, index y) { return x < y ? x : y; }\n";
    out += kMemory;
    if (steps.find("gather<") != std::string::npos) out += kGather;
    if (steps.find("total(") != std::string::npos) out += TotalText();
    return absl::StrCat(out, "\n", FunctionText(needs_, type_), steps);
  }

 private:
  std::string TotalText() const {
    const std::string real = RealName(type_);
    return absl::StrCat("template <typename V> static inline ", real,
                        " total(V value) {\n  constexpr int lanes = sizeof(V) / sizeof(", real,
                        ");\n  ", real, " lane[lanes];\n  store(lane, value);\n",
                        "#pragma GCC unroll 8\n"
                        "  for (int half = lanes / 2; half > 0; half /= 2) {\n"
                        "#pragma GCC unroll 16\n"
                        "    for (int i = 0; i < half; ++i) lane[i] += lane[i + half];\n  }\n  "
                        "return lane[0];\n}\n");
  }

  std::string StepText(const Step& step) {
    step_ = &step;
    scope_.emplace(program_, step);
    functions_.clear();
    body_.clear();
    wide_ |= tile::LargestOffsetBytes(program_, step) > INT32_MAX;
    EntryHead();
    std::vector<int> around = GridVariables();
    Body(step.body, around, "  ");
    if (body_.find("block->") == std::string::npos)  // one block, no scratch
      absl::StrReplaceAll({{"const kiln_block* block)", "const kiln_block*)"}}, &body_);
    return absl::StrCat(functions_, body_, "}\n\n");
  }

  void Line(const std::string& indent, absl::string_view text) {
    absl::StrAppend(&body_, indent, text, "\n");
  }

  void EntryHead() {
    absl::StrAppend(&body_, "extern \"C\" void ", EntryName(*step_, prefix_),
                    "(const kiln_arg* args, const kiln_block* block) {\n");
    std::set<int> written;
    std::set<int> scratch_buffers;
    ForEachLeaf(*step_, [&](const Statement& leaf, const std::vector<int>&) {
      ForEachView(leaf, [&](const View& view, const std::vector<TileDim>&, bool writes) {
        if (writes) written.insert(view.buffer);
        const Buffer& buffer = program_.buffers[view.buffer];
        type_ = buffer.type;
        if (buffer.level == Level::kScratch) scratch_buffers.insert(view.buffer);
      });
    });
    const std::vector<int> buffers = ArgumentBuffers(program_, *step_);
    for (size_t i = 0; i < buffers.size(); ++i) {
      const Buffer& buffer = program_.buffers[buffers[i]];
      const std::string pointer =
          absl::StrCat(written.count(buffers[i]) ? "" : "const ", RealName(buffer.type), "*");
      Line("  ",
           absl::StrCat(pointer, " ", buffer.name, " = (", pointer, ")args[", i, "].pointer;"));
    }
    for (int id : scratch_buffers) {
      const Buffer& buffer = program_.buffers[id];
      const std::string real = RealName(buffer.type);
      const std::string at = buffer.base == 0
                                 ? "block->shared"
                                 : absl::StrCat("((char*)block->shared + ", buffer.base, ")");
      Line("  ", absl::StrCat(real, "* ", buffer.name, " = (", real, "*)", at, ";"));
    }
  }

  // Splits the block's number into the grid's loops. Returns them, outermost first.
  std::vector<int> GridVariables() {
    int left = 0;
    for (int loop : step_->grid) left += scope_->HasVariable(loop);
    const bool single = left == 1;
    if (left > 1) Line("  ", "long long rest = block->index[0];");
    for (int id : step_->grid) {
      if (!scope_->HasVariable(id)) continue;
      const Loop& loop = step_->loops[id];
      const std::string times = loop.step == 1 ? "" : absl::StrCat(" * ", loop.step);
      const int64_t iterations = Iterations(program_, loop);
      if (single) {
        Line("  ",
             absl::StrCat("const index ", loop.name, " = (index)block->index[0]", times, ";"));
      } else if (--left == 0) {
        Line("  ", absl::StrCat("const index ", loop.name, " = (index)rest", times, ";"));
      } else {
        Line("  ", absl::StrCat("const index ", loop.name, " = (index)(rest % ", iterations, ")",
                                times, ";"));
        Line("  ", absl::StrCat("rest /= ", iterations, ";"));
      }
    }
    return {step_->grid.rbegin(), step_->grid.rend()};
  }

  void Body(const std::vector<Statement>& body, std::vector<int>& around,
            const std::string& indent) {
    for (const Statement& statement : body) {
      if (const For* loop = std::get_if<For>(&statement)) {
        LoopText(*loop, around, indent);
      } else if (const Copy* copy = std::get_if<Copy>(&statement)) {
        CopyText(*copy, around, indent);
      } else {
        TileText(std::get<Tile>(statement), around, indent);
      }
    }
  }

  void LoopText(const For& statement, std::vector<int>& around, const std::string& indent) {
    const Loop& loop = step_->loops[statement.loop];
    const bool variable = scope_->HasVariable(statement.loop);
    if (variable) {
      std::string limit = scope_->Remaining(loop.axis, loop.span, around);
      if (limit.find("smaller") != std::string::npos) {
        Line(indent, absl::StrCat("const index ", loop.name, "_end = ", limit, ";"));
        limit = absl::StrCat(loop.name, "_end");
      }
      Line(indent, absl::StrCat("for (index ", loop.name, " = 0; ", loop.name, " < ", limit, "; ",
                                loop.step == 1 ? absl::StrCat("++", loop.name)
                                               : absl::StrCat(loop.name, " += ", loop.step),
                                ") {"));
    }
    around.push_back(statement.loop);
    Body(statement.body, around, variable ? indent + "  " : indent);
    around.pop_back();
    if (variable) Line(indent, "}");
  }

  // Position of the first coordinate, compared: "m0 + m1 + 6 <= 1000".
  std::string WholeCondition(const TileDim& dim, const std::vector<int>& around) const {
    return absl::StrCat(scope_->Position(dim.axis, around), " + ", dim.size,
                        " <= ", program_.axes[dim.axis].extent);
  }

  void CopyText(const Copy& copy, const std::vector<int>& around, const std::string& indent) {
    const TileDim* padded = nullptr;
    for (const TileDim& dim : copy.dims) {
      if (dim.padded && program_.axes[dim.axis].extent % dim.size != 0) padded = &dim;
    }
    Line(indent, absl::StrCat("{  // ", copy.name));
    const std::string in = indent + "  ";
    const std::string real = RealName(program_.buffers[copy.target.buffer].type);
    Line(in, absl::StrCat("const ", real, "* from = ", scope_->Pointer(copy.source), ";"));
    Line(in, absl::StrCat(real, "* to = ", scope_->Pointer(copy.target), ";"));
    const std::vector<int64_t> sizes =
        padded ? ClippedSizes(program_, *padded) : std::vector<int64_t>{0};
    if (sizes.size() == 2) {
      Line(in, absl::StrCat("if (", WholeCondition(*padded, around), ") {"));
      CopyLoops(copy, around, in + "  ", padded, padded->size);
      Line(in, "} else {");
      CopyLoops(copy, around, in + "  ", padded, sizes[1]);
      Line(in, "}");
    } else {
      CopyLoops(copy, around, in, padded, sizes[0]);
    }
    Line(indent, "}");
  }

  // `valid`: coordinates of the padded dimension that exist; all the others are zero.
  void CopyLoops(const Copy& copy, const std::vector<int>& around, const std::string& indent,
                 const TileDim* padded, int64_t valid) {
    std::vector<std::pair<std::string, int64_t>> from, to;
    std::string in = indent, condition;
    for (size_t d = 0; d < copy.dims.size(); ++d) {
      const TileDim& dim = copy.dims[d];
      const std::string x = absl::StrCat("x", d);
      const std::string size =
          dim.padded ? absl::StrCat(dim.size) : scope_->Remaining(dim.axis, dim.size, around);
      from.push_back({x, copy.source.strides[d]});
      to.push_back({x, copy.target.strides[d]});
      if (&dim == padded && valid < dim.size) condition = absl::StrCat(x, " < ", valid);
      Line(in, absl::StrCat("for (index ", x, " = 0, ", x, "_end = ", size, "; ", x, " < ", x,
                            "_end; ++", x, ")"));
      in += "  ";
    }
    const std::string value = absl::StrCat("from[", Sum(from, 0), "]");
    Line(in, absl::StrCat("to[", Sum(to, 0), "] = ",
                          condition.empty() ? value : absl::StrCat(condition, " ? ", value, " : 0"),
                          ";"));
  }

  void TileText(const Tile& tile, const std::vector<int>& around, const std::string& indent) {
    const TileSignature signature = SignatureOf(program_, *step_, tile, around);
    const std::vector<int64_t> rows = ClippedSizes(program_, tile.rows),
                               columns = ClippedSizes(program_, tile.columns);
    std::vector<std::string> values;
    for (size_t s = 0; s < tile.stores.size(); ++s) {
      values.push_back("");
      if (tile.stores[s].value.nodes.empty()) continue;
      values.back() = absl::StrCat(tile.name, "_value");
      functions_ += ExpressionFunction(tile.stores[s].value, tile.type, values.back(),
                                       static_cast<int>(tile.stores[s].operands.size()), &needs_);
    }
    for (int64_t r : rows) {
      for (int64_t c : columns) functions_ += TileFunction(tile, signature, r, c, values, &lanes_);
    }
    std::string arguments;
    for (const auto& [name, view] : signature.pointers)
      absl::StrAppend(&arguments, arguments.empty() ? "" : ", ", scope_->Pointer(*view));
    if (signature.depth) {
      const tile::Product& product = tile.products.front();
      absl::StrAppend(&arguments, ", ", scope_->Remaining(product.axis, product.depth, around));
    }
    if (signature.first) absl::StrAppend(&arguments, ", ", FirstText(around));
    if (signature.last) absl::StrAppend(&arguments, ", ", LastText(tile, around));
    auto call = [&](const std::string& at, int64_t r, int64_t c) {
      Line(at, absl::StrCat(TileFunctionName(tile, r, c), "(", arguments, ");"));
    };
    auto by_columns = [&](const std::string& at, int64_t r) {
      if (columns.size() == 1) return call(at, r, columns[0]);
      Line(at, absl::StrCat("if (", WholeCondition(tile.columns, around), ") {"));
      call(at + "  ", r, columns[0]);
      Line(at, "} else {");
      call(at + "  ", r, columns[1]);
      Line(at, "}");
    };
    if (rows.size() == 1) return by_columns(indent, rows[0]);
    Line(indent, absl::StrCat("if (", WholeCondition(tile.rows, around), ") {"));
    by_columns(indent + "  ", rows[0]);
    Line(indent, "} else {");
    by_columns(indent + "  ", rows[1]);
    Line(indent, "}");
  }

  // Serial loops around over axes that are reduced: those that no store's place depends on.
  std::vector<int> ReducedLoops(const std::vector<int>& around) const {
    std::vector<int> reduced;
    const std::set<int> grid(step_->grid.begin(), step_->grid.end());
    for (int loop : around) {
      if (!grid.count(loop) && scope_->HasVariable(loop) &&
          program_.axes[step_->loops[loop].axis].reduced)
        reduced.push_back(loop);
    }
    return reduced;
  }

  std::string FirstText(const std::vector<int>& around) const {
    std::string text;
    for (int loop : ReducedLoops(around))
      absl::StrAppend(&text, text.empty() ? "" : " && ", scope_->Variable(loop), " == 0");
    return text;
  }

  std::string LastText(const Tile&, const std::vector<int>& around) const {
    std::string text;
    for (int id : ReducedLoops(around)) {
      const Loop& loop = step_->loops[id];
      std::vector<int> outside(around.begin(), std::find(around.begin(), around.end(), id));
      absl::StrAppend(&text, text.empty() ? "" : " && ", loop.name, " + ", loop.step,
                      " >= ", scope_->Remaining(loop.axis, loop.span, outside));
    }
    return text;
  }

  const Program& program_;
  const std::string prefix_;
  const Step* step_ = nullptr;
  std::optional<Scope> scope_;
  std::string functions_, body_;
  std::set<std::string> needs_;
  std::vector<int> lanes_;
  DType type_ = DType::kF32;
  bool wide_ = false;
};

}  // namespace

std::string EntryName(const Step& step, const std::string& prefix) {
  return absl::StrCat(prefix, "_", step.name);
}

std::vector<int> ArgumentBuffers(const Program& program, const Step& step) {
  std::set<int> seen;
  ForEachLeaf(step, [&](const Statement& leaf, const std::vector<int>&) {
    ForEachView(leaf, [&](const View& view, const std::vector<TileDim>&, bool) {
      if (program.buffers[view.buffer].level != Level::kScratch) seen.insert(view.buffer);
    });
  });
  return {seen.begin(), seen.end()};
}

std::string PrintCpp(const Program& program, const std::string& prefix) {
  return Printer(program, prefix).Run();
}

}  // namespace kiln::compiler::emit
