// SPDX-License-Identifier: Apache-2.0
#include "worker/compiler/tile/print.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace kiln::compiler::tile {
namespace {

absl::string_view Name(Level level) {
  switch (level) {
    case Level::kGlobal:
      return "global";
    case Level::kWorkspace:
      return "workspace";
    case Level::kPersistent:
      return "persistent";
    case Level::kScratch:
      return "scratch";
  }
  return "";
}

absl::string_view Name(When when) {
  switch (when) {
    case When::kAlways:
      return "";
    case When::kNotFirst:
      return " unless first";
    case When::kNotLast:
      return " unless last";
    case When::kLast:
      return " if last";
  }
  return "";
}

class Printer {
 public:
  explicit Printer(const Program& program) : program_(program) {}

  std::string Run() {
    absl::StrAppend(&out_, "program ", program_.title, "\nschedule ", program_.schedule, "\n");
    for (const Axis& axis : program_.axes)
      absl::StrAppend(&out_, "axis ", axis.name, " ", axis.extent, "\n");
    for (const Buffer& buffer : program_.buffers) {
      absl::StrAppend(&out_, "buffer ", buffer.name, " ", Name(buffer.level), " ",
                      kiln::Print(buffer.type), "[", buffer.elements, "]");
      if (buffer.level != Level::kGlobal) absl::StrAppend(&out_, " at ", buffer.base);
      absl::StrAppend(&out_, " align ", buffer.alignment, "\n");
    }
    for (const Step& step : program_.steps) PrintStep(step);
    absl::StrAppend(&out_, "workspace ", program_.workspace_bytes, " persistent ",
                    program_.persistent_bytes, "\n");
    return std::move(out_);
  }

 private:
  void PrintStep(const Step& step) {
    step_ = &step;
    absl::StrAppend(&out_,
                    step.kind == StepKind::kPrepack   ? "prepack "
                    : step.kind == StepKind::kLibrary ? "library "
                                                      : "step ",
                    step.name);
    if (step.kind == StepKind::kLibrary) {
      const LibraryCall& call = step.call;
      absl::StrAppend(&out_, " ", call.routine, "(", program_.buffers[call.a].name, ", ",
                      program_.buffers[call.b].name, ", ", program_.buffers[call.c].name, "; ",
                      absl::StrJoin(call.numbers, " "), ")\n");
      return;
    }
    absl::StrAppend(&out_, " scratch ", ScratchBytes(program_, step), "\n");
    for (int loop : step.grid) absl::StrAppend(&out_, "  grid ", LoopText(step.loops[loop]), "\n");
    PrintBody(step.body, "  ");
  }

  std::string LoopText(const Loop& loop) const {
    return absl::StrCat(loop.name, " over ", program_.axes[loop.axis].name, " by ", loop.step,
                        " of ", loop.span);
  }

  std::string ViewText(const View& view, const std::vector<TileDim>& dims) const {
    std::string text = absl::StrCat(program_.buffers[view.buffer].name, "[", view.offset);
    for (const auto& [loop, factor] : view.loops) {
      if (factor != 0) absl::StrAppend(&text, " + #", step_->loops[loop].name, "*", factor);
    }
    for (size_t d = 0; d < dims.size(); ++d) {
      absl::StrAppend(&text, " + ", program_.axes[dims[d].axis].name, "'*", view.strides[d]);
    }
    return absl::StrCat(text, "]");
  }

  static std::string ExpressionText(const Expression& expression) {
    if (expression.nodes.empty()) return "acc";
    std::string text;
    for (size_t i = 0; i < expression.nodes.size(); ++i) {
      const Expression::Node& node = expression.nodes[i];
      absl::StrAppend(&text, i == 0 ? "" : "; ", "%", i, " = ");
      switch (node.source) {
        case Expression::Source::kAccumulator:
          absl::StrAppend(&text, "acc");
          break;
        case Expression::Source::kOperand:
          absl::StrAppend(&text, "x", node.operand);
          break;
        case Expression::Source::kLiteral:
          absl::StrAppend(
              &text, IsFloat(node.type) ? absl::StrCat(node.number) : absl::StrCat(node.integer));
          break;
        case Expression::Source::kOperation:
          absl::StrAppend(&text, "op", static_cast<int>(node.op), "(%",
                          absl::StrJoin(node.args, ", %"), ")");
          break;
      }
    }
    return text;
  }

  void PrintBody(const std::vector<Statement>& body, const std::string& indent) {
    for (const Statement& statement : body) {
      if (const For* loop = std::get_if<For>(&statement)) {
        absl::StrAppend(&out_, indent, "for ", LoopText(step_->loops[loop->loop]), "\n");
        PrintBody(loop->body, indent + "  ");
      } else if (const Copy* copy = std::get_if<Copy>(&statement)) {
        absl::StrAppend(&out_, indent, "copy ", copy->name, " ", DimsText(copy->dims), "\n", indent,
                        "  ", ViewText(copy->target, copy->dims), " = ",
                        ViewText(copy->source, copy->dims), "\n");
      } else {
        PrintTile(std::get<Tile>(statement), indent);
      }
    }
  }

  std::string DimsText(const std::vector<TileDim>& dims) const {
    return absl::StrJoin(dims, " x ", [&](std::string* out, const TileDim& dim) {
      absl::StrAppend(out, program_.axes[dim.axis].name, "'", dim.size);
    });
  }

  void PrintTile(const Tile& tile, const std::string& indent) {
    const std::vector<TileDim> place{tile.rows, tile.columns};
    absl::StrAppend(&out_, indent, "tile ", tile.name, " ", DimsText(place), " ",
                    tile.instruction == Instruction::kOuter ? "outer" : "dot", "(",
                    kiln::Print(tile.type), " x ", tile.lanes, ")", tile.padded ? " padded" : "",
                    tile.resume ? " resume" : "", "\n");
    for (const Product& product : tile.products) {
      const TileDim p{product.axis, product.depth};
      absl::StrAppend(&out_, indent, "  acc += ", ViewText(product.a, {tile.rows, p}), " * ",
                      ViewText(product.b, {p, tile.columns}), " depth ", product.depth, " unroll ",
                      product.unroll);
      if (product.prefetch != 0)
        absl::StrAppend(&out_, " prefetch ", product.prefetch, " to L", product.prefetch_level);
      absl::StrAppend(&out_, "\n");
    }
    for (const Join& join : tile.joins) {
      absl::StrAppend(&out_, indent, "  acc += ", ViewText(join.source, place));
      if (join.count != 1) absl::StrAppend(&out_, " x ", join.count, " by ", join.stride);
      absl::StrAppend(&out_, Name(join.when), "\n");
    }
    for (const Store& store : tile.stores) {
      absl::StrAppend(&out_, indent, "  ", ViewText(store.target, place), " = ",
                      ExpressionText(store.value), Name(store.when), "\n");
      for (size_t x = 0; x < store.operands.size(); ++x) {
        absl::StrAppend(&out_, indent, "    x", x, " = ", ViewText(store.operands[x], place), "\n");
      }
    }
  }

  const Program& program_;
  const Step* step_ = nullptr;
  std::string out_;
};

}  // namespace

std::string Print(const Program& program) { return Printer(program).Run(); }

}  // namespace kiln::compiler::tile
