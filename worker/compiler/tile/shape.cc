// SPDX-License-Identifier: Apache-2.0
#include "worker/compiler/tile/shape.h"

#include <algorithm>
#include <set>

#include "absl/strings/str_cat.h"

namespace kiln::compiler::tile {
namespace {

constexpr size_t kCallNumbers = 12;  // trans_a .. batch_stride_c

class ShapeChecker {
 public:
  explicit ShapeChecker(const Program& program) : program_(program) {}

  absl::Status Run() {
    for (const Axis& axis : program_.axes)
      Expect(axis.extent >= 0, absl::StrCat("axis ", axis.name, " of ", axis.extent));
    for (const Buffer& buffer : program_.buffers) CheckBuffer(buffer);
    for (const Step& step : program_.steps) {
      step_ = &step;
      if (status_.ok()) step.kind == StepKind::kLibrary ? CheckCall(step.call) : CheckStep(step);
    }
    return status_;
  }

 private:
  // The first complaint stays.
  bool Expect(bool good, absl::string_view what) {
    if (!good && status_.ok()) {
      status_ = absl::InternalError(
          step_ == nullptr ? std::string(what) : absl::StrCat("step ", step_->name, ": ", what));
    }
    return good;
  }
  bool HasAxis(int axis) const { return axis >= 0 && axis < program_.axes.size(); }
  bool HasBuffer(int buffer) const { return buffer >= 0 && buffer < program_.buffers.size(); }
  bool HasLoop(int loop) const { return loop >= 0 && loop < step_->loops.size(); }

  void CheckBuffer(const Buffer& buffer) {
    const int64_t a = buffer.alignment;
    Expect(buffer.elements >= 0 && a > 0 && (a & (a - 1)) == 0,
           absl::StrCat(buffer.name, ": ", buffer.elements, " elements aligned to ", a));
    if (buffer.level == Level::kGlobal) {
      Expect(buffer.tensor >= 0, absl::StrCat(buffer.name, ": is no tensor"));
      return;
    }
    Expect(a <= kLevelAlignment && buffer.base >= 0 && buffer.base % a == 0,
           absl::StrCat(buffer.name, ": byte ", buffer.base, " is not aligned to ", a));
  }

  void CheckStep(const Step& step) {
    for (const Loop& loop : step.loops) {
      Expect(HasAxis(loop.axis) && loop.step >= 1 && loop.span >= 1,
             absl::StrCat("loop ", loop.name, " over axis ", loop.axis, " by ", loop.step, " of ",
                          loop.span));
    }
    std::set<int> open;
    for (int id : step.grid) {
      Expect(HasLoop(id) && open.insert(id).second,
             absl::StrCat("grid loop ", id, " is there twice or not at all"));
    }
    if (status_.ok()) CheckBody(step.body, open);
  }

  // `open`: loops around.
  void CheckBody(const std::vector<Statement>& body, const std::set<int>& open) {
    for (const Statement& statement : body) {
      if (!status_.ok()) return;
      if (const For* loop = std::get_if<For>(&statement)) {
        std::set<int> inside = open;
        if (Expect(HasLoop(loop->loop) && inside.insert(loop->loop).second,
                   absl::StrCat("loop ", loop->loop, " is open already or not there"))) {
          CheckBody(loop->body, inside);
        }
      } else if (const Copy* copy = std::get_if<Copy>(&statement)) {
        CheckCopy(*copy, open);
      } else {
        CheckTile(std::get<Tile>(statement), open);
      }
    }
  }

  bool CheckDim(const TileDim& dim) {
    return Expect(HasAxis(dim.axis) && dim.size >= 1,
                  absl::StrCat("a tile of ", dim.size, " along axis ", dim.axis));
  }

  void CheckView(const View& view, size_t dims, DType type, const std::set<int>& open) {
    if (!Expect(HasBuffer(view.buffer), absl::StrCat("a view of buffer ", view.buffer))) return;
    const Buffer& buffer = program_.buffers[view.buffer];
    Expect(view.strides.size() == dims,
           absl::StrCat(buffer.name, ": ", view.strides.size(), " strides for a tile of ", dims));
    Expect(buffer.type == type,
           absl::StrCat(buffer.name, ": is ", Print(buffer.type), ", not ", Print(type)));
    std::set<int> seen;
    for (const auto& [loop, factor] : view.loops) {
      const std::string name = HasLoop(loop) ? step_->loops[loop].name : absl::StrCat(loop);
      Expect(open.count(loop) > 0,
             absl::StrCat(buffer.name, ": follows loop ", name, ", which is not around it"));
      Expect(seen.insert(loop).second,
             absl::StrCat(buffer.name, ": follows loop ", name, " twice"));
    }
  }

  void CheckCopy(const Copy& copy, const std::set<int>& open) {
    for (const TileDim& dim : copy.dims) CheckDim(dim);
    if (!Expect(HasBuffer(copy.target.buffer), absl::StrCat("a copy to ", copy.target.buffer)))
      return;
    const DType type = program_.buffers[copy.target.buffer].type;
    CheckView(copy.target, copy.dims.size(), type, open);
    CheckView(copy.source, copy.dims.size(), type, open);
  }

  void CheckTile(const Tile& tile, const std::set<int>& open) {
    if (!CheckDim(tile.rows) || !CheckDim(tile.columns)) return;
    Expect(tile.lanes >= 1 && tile.products.size() <= 1,
           absl::StrCat("tile ", tile.name, ": ", tile.lanes, " lanes, ", tile.products.size(),
                        " products"));
    for (const Product& product : tile.products) {
      CheckDim({product.axis, product.depth});
      Expect(product.unroll >= 1, absl::StrCat("tile ", tile.name, ": unroll ", product.unroll));
      CheckView(product.a, 2, tile.type, open);
      CheckView(product.b, 2, tile.type, open);
    }
    for (const Join& join : tile.joins) {
      Expect(join.count >= 1, absl::StrCat("tile ", tile.name, ": joins ", join.count));
      CheckView(join.source, 2, tile.type, open);
    }
    for (const Store& store : tile.stores) {
      CheckView(store.target, 2, tile.type, open);
      for (const View& operand : store.operands) CheckView(operand, 2, tile.type, open);
      CheckExpression(store.value, static_cast<int>(store.operands.size()));
    }
  }

  void CheckExpression(const Expression& expression, int operands) {
    for (size_t i = 0; i < expression.nodes.size(); ++i) {
      const Expression::Node& node = expression.nodes[i];
      if (node.source == Expression::Source::kOperand) {
        Expect(node.operand >= 0 && node.operand < operands,
               absl::StrCat("a value reads operand ", node.operand, " of ", operands));
      }
      for (int arg : node.args) {
        Expect(arg >= 0 && arg < static_cast<int>(i),
               absl::StrCat("node ", i, " of a value uses node ", arg));
      }
    }
  }

  void CheckCall(const LibraryCall& call) {
    if (!Expect(HasBuffer(call.a) && HasBuffer(call.b) && HasBuffer(call.c),
                absl::StrCat("a call on buffers ", call.a, ", ", call.b, " and ", call.c)))
      return;
    Expect(call.numbers.size() == kCallNumbers,
           absl::StrCat("a call with ", call.numbers.size(), " numbers, not ", kCallNumbers));
  }

  const Program& program_;
  const Step* step_ = nullptr;
  absl::Status status_;
};

}  // namespace

absl::Status CheckShape(const Program& program) { return ShapeChecker(program).Run(); }

}  // namespace kiln::compiler::tile
