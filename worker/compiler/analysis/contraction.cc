// SPDX-License-Identifier: Apache-2.0
#include "worker/compiler/analysis/contraction.h"

#include <algorithm>
#include <optional>

#include "absl/strings/str_cat.h"
#include "worker/compiler/analysis/affine.h"
#include "worker/compiler/analysis/epilogue_walk.h"

namespace kiln::compiler {
namespace {

absl::Status Refuse(absl::string_view sentence) {
  return absl::UnimplementedError(absl::StrCat("no contraction: ", sentence));
}

// A read seen from the scope of the output's axes followed by the sum's bound variables.
struct Access {
  int tensor = -1;
  int64_t offset = 0;            // in elements, at 0 of all variables
  std::vector<int64_t> strides;  // in elements, per variable
  std::vector<bool> carries;     // the variable occurs in a subscript
};

// A variable of that scope.
struct Variable {
  std::string name;
  int64_t lo = 0, extent = 1;
};

// A loop axis with its strides in A, B, C and the epilogue's operands, in this order.
struct Axis {
  std::string name;
  int64_t extent = 1;
  std::vector<int64_t> strides;
};

class Matcher {
 public:
  explicit Matcher(const Workload& workload) : graph_(workload.graph), affine_(graph_) {}

  absl::StatusOr<ContractionForm> Match();

 private:
  absl::Status FindOutput();
  absl::Status CheckSum();
  absl::Status FindVariables();
  absl::Status FindOperands();
  absl::Status FindEpilogueOperands();
  absl::StatusOr<Access> AccessOf(const Term& read, bool window_allowed) const;
  void OrderOperands();
  void BuildAxes();
  std::vector<Axis> Fuse(std::vector<Axis> axes) const;
  void Store(const std::vector<Axis>& axes, std::vector<ContractionAxis>& group,
             std::vector<int64_t> EpilogueOperand::*strides);

  const std::string& NameOf(int tensor) const { return graph_.tensors[tensor].name; }
  int rank() const { return static_cast<int>(graph_.tensors[form_.c].shape.size()); }

  const Graph& graph_;
  AffineTable affine_;
  ContractionForm form_;
  EpilogueWalk walk_;
  std::vector<Variable> variables_;  // output axes, then the sum's
  Access a_, b_;
  std::vector<Access> others_;  // of the epilogue, as form_.operands
};

absl::Status Matcher::FindOutput() {
  if (!graph_.is_static()) return Refuse("dynamic dims are not supported yet");
  int outputs = 0;
  for (size_t i = 0; i < graph_.tensors.size(); ++i) {
    const Tensor& tensor = graph_.tensors[i];
    if (tensor.kind == TensorKind::kTemporary) {
      return Refuse(absl::StrCat("the temporary ", tensor.name,
                                 " stays a tensor of its own (it has a type, or is not read "
                                 "through distinct lone variables)"));
    }
    if (tensor.kind != TensorKind::kOutput) continue;
    form_.c = static_cast<int>(i);
    ++outputs;
  }
  if (outputs != 1) return Refuse(absl::StrCat("the program has ", outputs, " outputs"));
  form_.type = graph_.tensors[form_.c].type;
  form_.epilogue = graph_.tensors[form_.c].definition;
  if (form_.type != DType::kF32 && form_.type != DType::kF64) {
    return Refuse(absl::StrCat("the output ", NameOf(form_.c), " is ", Print(form_.type),
                               "; f32 and f64 are supported"));
  }
  return absl::OkStatus();
}

absl::Status Matcher::CheckSum() {
  form_.sum = walk_.sum.node;
  form_.trivial_epilogue = form_.epilogue.node == form_.sum;
  const Node& sum = graph_.nodes[form_.sum];
  if (sum.reduce != ReduceOp::kSum) return Refuse("its reduction is not a sum");
  if (sum.type != form_.type) return Refuse("the sum and the output differ in type");
  // A kernel may accumulate more precisely than the policy asks, never less.
  form_.accumulator = sum.accumulator == DType::kF64 ? DType::kF64 : form_.type;
  const Node& product = graph_.nodes[sum.args[0].node];
  if (product.op != Op::kMul) {
    return Refuse("it sums something other than a product of two reads");
  }
  for (const Term& factor : product.args) {
    const Node& node = graph_.nodes[factor.node];
    if (node.op == Op::kLiteral) {
      return Refuse("a literal factor stands inside the sum; write it outside: sum(a * b) * c");
    }
    if (node.op == Op::kMul) {
      return Refuse("the sum has more than two factors; write literal ones outside of it");
    }
    if (node.op == Op::kCast) return Refuse("an operand is cast inside the sum");
    if (node.op != Op::kRead) return Refuse("a factor of the product is not a plain read");
  }
  return absl::OkStatus();
}

absl::Status Matcher::FindVariables() {
  const Tensor& c = graph_.tensors[form_.c];
  for (int axis = 0; axis < rank(); ++axis) {
    std::optional<int64_t> extent = affine_.ConstantOf(c.shape[axis]);
    if (!extent) return Refuse("the output's shape is not static");
    std::string name = axis < c.axis_names.size() ? c.axis_names[axis] : absl::StrCat("d", axis);
    variables_.push_back({name, 0, *extent});
  }
  const Node& sum = graph_.nodes[form_.sum];
  for (size_t i = 0; i < sum.bound.size(); ++i) {
    std::optional<int64_t> lo = affine_.ConstantOf(sum.bound[i].lo);
    std::optional<int64_t> hi = affine_.ConstantOf(sum.bound[i].hi);
    if (!lo || !hi) return Refuse("the sum's range depends on other variables or on data");
    std::string name = sum.bound.size() == 1 ? "k" : absl::StrCat("k", i);
    variables_.push_back({name, *lo, std::max<int64_t>(0, *hi - *lo)});
  }
  return absl::OkStatus();
}

absl::StatusOr<Access> Matcher::AccessOf(const Term& read, bool window_allowed) const {
  const Node& node = graph_.nodes[read.node];
  const Tensor& tensor = graph_.tensors[node.index];
  if (node.has_else) {
    return Refuse(absl::StrCat(tensor.name, " is read with `else`"));
  }
  if (tensor.type != form_.type) {
    return Refuse(absl::StrCat(tensor.name, " is ", Print(tensor.type), " and the output ",
                               Print(form_.type)));
  }
  if (tensor.kind == TensorKind::kOutput) return Refuse("an output is read again");
  const int count = static_cast<int>(variables_.size());
  Access access{node.index, 0, std::vector<int64_t>(count), std::vector<bool>(count)};
  for (size_t axis = 0; axis < tensor.shape.size(); ++axis) {
    std::optional<Affine> subscript = affine_.OfTerm(node.args[axis], count, &read.vars);
    if (!subscript) {
      return Refuse(absl::StrCat("subscript ", axis + 1, " of ", tensor.name,
                                 " is not a sum of variables with constant factors"));
    }
    int running = 0;
    access.offset += subscript->constant * tensor.strides[axis];
    for (int v = 0; v < count; ++v) {
      const int64_t coefficient = subscript->coefficients[v];
      access.strides[v] += coefficient * tensor.strides[axis];
      access.offset += coefficient * variables_[v].lo * tensor.strides[axis];
      if (coefficient != 0) access.carries[v] = true;
      running += coefficient != 0 && variables_[v].extent > 1;
    }
    if (running > 1 && !window_allowed) {
      return Refuse(absl::StrCat(tensor.name, " is read through a window: two variables meet in ",
                                 "its subscript ", axis + 1));
    }
  }
  return access;
}

absl::Status Matcher::FindOperands() {
  const Node& sum = graph_.nodes[form_.sum];
  const Node& product = graph_.nodes[sum.args[0].node];
  // Variables of the sum node, in the scope of output axes and bound variables.
  std::vector<int> scope = walk_.sum.vars;
  for (size_t i = 0; i < sum.bound.size(); ++i) scope.push_back(rank() + static_cast<int>(i));
  Term inner{sum.args[0].node, Compose(sum.args[0].vars, scope)};
  Access* accesses[2] = {&a_, &b_};
  for (int side = 0; side < 2; ++side) {
    const Term& factor = product.args[side];
    auto access = AccessOf(Term{factor.node, Compose(factor.vars, inner.vars)}, false);
    if (!access.ok()) return access.status();
    *accesses[side] = *std::move(access);
    if (graph_.tensors[form_.c].alias_of == accesses[side]->tensor) {
      return Refuse(absl::StrCat("the output shares the memory of ", NameOf(accesses[side]->tensor),
                                 ", which is read for other elements"));
    }
  }
  return absl::OkStatus();
}

absl::Status Matcher::FindEpilogueOperands() {
  const Tensor& c = graph_.tensors[form_.c];
  for (const Term& read : walk_.reads) {
    auto access = AccessOf(read, true);
    if (!access.ok()) return access.status();
    EpilogueOperand operand{.tensor = access->tensor, .access = read, .offset = access->offset};
    if (c.alias_of == access->tensor) {
      bool same = access->offset == 0;
      for (int axis = 0; axis < rank(); ++axis) {
        if (variables_[axis].extent > 1) same &= access->strides[axis] == c.strides[axis];
      }
      if (!same) {
        return Refuse(absl::StrCat("the output shares the memory of ", NameOf(access->tensor),
                                   ", which is read at another element"));
      }
      operand.aliases_output = true;
    }
    form_.operands.push_back(operand);
    others_.push_back(*std::move(access));
  }
  return absl::OkStatus();
}

// b is the operand that carries the output's fastest axis.
void Matcher::OrderOperands() {
  const Tensor& c = graph_.tensors[form_.c];
  int fastest = -1;
  for (int axis = 0; axis < rank(); ++axis) {
    if (variables_[axis].extent <= 1 || a_.carries[axis] == b_.carries[axis]) continue;
    if (fastest < 0 || c.strides[axis] <= c.strides[fastest]) fastest = axis;
  }
  if (fastest >= 0 && a_.carries[fastest]) std::swap(a_, b_);
  form_.a = a_.tensor, form_.b = b_.tensor;
  form_.a_offset = a_.offset, form_.b_offset = b_.offset;
  form_.a_constant = graph_.tensors[form_.a].kind == TensorKind::kConstant;
  form_.b_constant = graph_.tensors[form_.b].kind == TensorKind::kConstant;
}

// Joins axes that one stride per operand can walk, until none are left to join.
std::vector<Axis> Matcher::Fuse(std::vector<Axis> axes) const {
  for (const Axis& axis : axes) {
    if (axis.extent == 0) return {Axis(axis)};
  }
  auto joins = [](const Axis& outer, const Axis& inner) {
    for (size_t i = 0; i < outer.strides.size(); ++i) {
      if (outer.strides[i] != inner.strides[i] * inner.extent) return false;
    }
    return true;
  };
  for (size_t i = 0; i < axes.size(); ++i) {
    for (size_t j = 0; j < axes.size(); ++j) {
      if (i == j || !joins(axes[i], axes[j])) continue;
      axes[j].name = absl::StrCat(axes[i].name, "*", axes[j].name);
      axes[j].extent *= axes[i].extent;
      axes.erase(axes.begin() + static_cast<std::ptrdiff_t>(i));
      i = static_cast<size_t>(-1);  // start again
      break;
    }
  }
  // Outermost first: by the output's stride, of k by A's and then B's.
  std::stable_sort(axes.begin(), axes.end(), [](const Axis& x, const Axis& y) {
    if (x.strides[2] != y.strides[2]) return x.strides[2] > y.strides[2];
    if (x.strides[0] != y.strides[0]) return x.strides[0] > y.strides[0];
    return x.strides[1] > y.strides[1];
  });
  return axes;
}

void Matcher::Store(const std::vector<Axis>& axes, std::vector<ContractionAxis>& group,
                    std::vector<int64_t> EpilogueOperand::*strides) {
  for (const Axis& axis : axes) {
    group.push_back({axis.name, axis.extent, axis.strides[0], axis.strides[1], axis.strides[2]});
    if (strides == nullptr) continue;
    for (size_t i = 0; i < form_.operands.size(); ++i) {
      (form_.operands[i].*strides).push_back(axis.strides[3 + i]);
    }
  }
}

void Matcher::BuildAxes() {
  const Tensor& c = graph_.tensors[form_.c];
  std::vector<Axis> batch, m, n, k;
  for (size_t v = 0; v < variables_.size(); ++v) {
    if (variables_[v].extent == 1) continue;
    const bool is_output = v < static_cast<size_t>(rank());
    Axis axis{variables_[v].name,
              variables_[v].extent,
              {a_.strides[v], b_.strides[v], is_output ? c.strides[v] : 0}};
    for (const Access& other : others_) axis.strides.push_back(other.strides[v]);
    std::vector<Axis>& group = !is_output                       ? k
                               : a_.carries[v] && b_.carries[v] ? batch
                               : a_.carries[v]                  ? m
                                                                : n;
    group.push_back(std::move(axis));
  }
  Store(Fuse(std::move(batch)), form_.batch, &EpilogueOperand::batch);
  Store(Fuse(std::move(m)), form_.m, &EpilogueOperand::m);
  Store(Fuse(std::move(n)), form_.n, &EpilogueOperand::n);
  Store(Fuse(std::move(k)), form_.k, nullptr);
}

absl::StatusOr<ContractionForm> Matcher::Match() {
  if (absl::Status s = FindOutput(); !s.ok()) return s;
  absl::StatusOr<EpilogueWalk> walk = WalkEpilogue(graph_, form_.epilogue, form_.type);
  if (!walk.ok()) return Refuse(walk.status().message());
  walk_ = *std::move(walk);
  if (absl::Status s = CheckSum(); !s.ok()) return s;
  if (absl::Status s = FindVariables(); !s.ok()) return s;
  if (absl::Status s = FindOperands(); !s.ok()) return s;
  if (absl::Status s = FindEpilogueOperands(); !s.ok()) return s;
  OrderOperands();
  BuildAxes();
  return std::move(form_);
}

int64_t Product(const std::vector<ContractionAxis>& axes) {
  int64_t product = 1;
  for (const ContractionAxis& axis : axes) product *= axis.extent;
  return product;
}

}  // namespace

int64_t ContractionForm::M() const { return Product(m); }
int64_t ContractionForm::N() const { return Product(n); }
int64_t ContractionForm::K() const { return Product(k); }
int64_t ContractionForm::Batch() const { return Product(batch); }

absl::StatusOr<ContractionForm> MatchContraction(const Workload& workload) {
  return Matcher(workload).Match();
}

}  // namespace kiln::compiler
