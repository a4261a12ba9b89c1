// SPDX-License-Identifier: Apache-2.0
// Statements without subscripts: one variable per dim name. Operands broadcast by dim name,
// reductions and softmax say what they run over by `over`.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "proto/contract/language/limits.h"
#include "proto/contract/language/resolve.h"
#include "proto/contract/language/words.h"

namespace kiln::language {
namespace {

struct NamedVar {
  int dim;
  VarId var;
  bool used = false;
};

class ByNameStatement {
 public:
  ByNameStatement(Scope* scope, Statement* statement, TensorSymbol* target)
      : scope_(*scope), statement_(*statement), target_(*target), first_var_(scope->vars.size()) {
    frames_.emplace_back();
  }

  bool Run() {
    Walk(statement_.value);
    if (failed_ || poisoned_) return false;
    return target_.kind == TensorKind::kOutput ? FillOutput() : ShapeTemporary();
  }

 private:
  bool Fail(size_t offset, std::string what, std::string hint) {
    scope_.errors.Add(offset, std::move(what), std::move(hint));
    failed_ = true;
    return false;
  }

  VarId MakeVar(int dim, size_t offset) {
    if (scope_.vars.size() - first_var_ >= kMaxVariables) {
      Fail(offset, absl::StrCat("more than ", kMaxVariables, " variables in one statement"),
           "split the statement: give a part of it a name");
      return -1;
    }
    Var var;
    var.name = scope_.dims[dim].name;
    var.offset = offset;
    scope_.vars.push_back(std::move(var));
    VarId id = static_cast<VarId>(scope_.vars.size()) - 1;
    scope_.SetRange(id, nullptr, scope_.DimExpr(dim));
    return id;
  }

  // The innermost variable of the dim; in the outermost frame, which is the statement's own, it is
  // made on demand.
  VarId VarOf(int dim, size_t offset) {
    for (auto frame = frames_.rbegin(); frame != frames_.rend(); ++frame) {
      for (NamedVar& named : *frame) {
        if (named.dim != dim) continue;
        named.used = true;
        return named.var;
      }
    }
    VarId var = MakeVar(dim, offset);
    if (var >= 0) frames_[0].push_back({dim, var, true});
    return var;
  }

  void Walk(Expr* expr) {
    switch (expr->kind) {
      case ExprKind::kRead:
        return WalkRead(expr);
      case ExprKind::kReduce:
        return WalkReduction(expr);
      case ExprKind::kSoftmax:
        return WalkSoftmax(expr);
      default:
        for (Expr* arg : expr->args) Walk(arg);
    }
  }

  void WalkRead(Expr* expr) {
    bool reported = false;
    if (!ResolveGlobal(&scope_, expr, &reported, &poisoned_)) {
      failed_ = true;
      if (!reported) {
        scope_.errors.Add(expr->offset,
                          absl::StrCat(Quote(expr->text), " is neither a tensor nor a dim"),
                          "declare it, or write subscripts if it is to be a variable");
      }
      return;
    }
    if (expr->otherwise != nullptr) Walk(expr->otherwise);
    if (expr->reference != Reference::kTensor) return;
    const TensorSymbol& tensor = scope_.tensors[expr->index];
    if (tensor.poisoned) return;
    if (expr->bracketed && !tensor.axes.empty()) {
      Fail(expr->offset,
           absl::StrCat(Quote(tensor.name), " has ", tensor.axes.size(),
                        " axes, no subscripts are given"),
           "give one subscript per axis, or leave the brackets away");
      return;
    }
    if (!CheckNamed(tensor, expr->offset)) return;
    for (const Axis& axis : tensor.axes) expr->vars.push_back(VarOf(axis.dim, expr->offset));
  }

  // Only distinct plain dims can be matched by name.
  bool CheckNamed(const TensorSymbol& tensor, size_t offset) {
    for (size_t i = 0; i < tensor.axes.size(); ++i) {
      int dim = tensor.axes[i].dim;
      bool repeated = false;
      for (size_t j = 0; j < i; ++j) repeated = repeated || (dim >= 0 && tensor.axes[j].dim == dim);
      if (dim >= 0 && !repeated) continue;
      return Fail(offset,
                  absl::StrCat("axis ", i, " of ", Quote(tensor.name),
                               repeated ? " repeats a dim" : " has no dim's name",
                               ", it cannot be matched by name"),
                  absl::StrCat("write subscripts in this statement: ", tensor.name, "[i,...]"));
    }
    return true;
  }

  bool CheckOver(const Expr& expr) {
    for (const NamePosition& name : expr.over) {
      if (scope_.FindDim(name.name) != nullptr) continue;
      Fail(name.offset,
           absl::StrCat(Quote(name.name), " is no dim; without subscripts `over` names dims"),
           "write over [K] with a dim of the head");
    }
    return !failed_;
  }

  void WalkReduction(Expr* expr) {
    absl::string_view name = ReductionName(expr->reduce);
    if (expr->over.empty()) {
      bool extremum = expr->reduce == ReduceOp::kMax || expr->reduce == ReduceOp::kMin;
      Fail(expr->offset, absl::StrCat("what does ", name, " run over?"),
           absl::StrCat("without subscripts a reduction names dims: ", name, "(x over [K])",
                        extremum ? absl::StrCat("; of two values it is ", name, "(a, b)") : ""));
      return;
    }
    bool place = expr->reduce == ReduceOp::kArgmax || expr->reduce == ReduceOp::kArgmin;
    if (place && expr->over.size() > 1) {
      Fail(expr->offset,
           absl::StrCat(name, " runs over ", expr->over.size(), " dims, it gives the place in one"),
           "run over one dim");
      return;
    }
    if (!CheckOver(*expr)) return;
    std::vector<NamedVar> frame;
    for (const NamePosition& over : expr->over) {
      int dim = scope_.dim_names[over.name];
      VarId var = MakeVar(dim, over.offset);
      if (var < 0) return;
      frame.push_back({dim, var});
      expr->vars.push_back(var);
    }
    frames_.push_back(std::move(frame));
    Walk(expr->args[0]);
    if (!failed_ && !poisoned_) {
      for (size_t i = 0; i < expr->over.size(); ++i) {
        if (!frames_.back()[i].used) ReportUnused(expr->over[i], name);
      }
    }
    frames_.pop_back();
  }

  void ReportUnused(const NamePosition& over, absl::string_view what) {
    Fail(over.offset,
         absl::StrCat("nothing that ", what, " runs over has a dim ", Quote(over.name)),
         "name a dim of the expression");
  }

  // Softmax keeps its dims: it runs over the variables that are in scope around it.
  void WalkSoftmax(Expr* expr) {
    if (!CheckOver(*expr)) return;
    Walk(expr->args[0]);
    if (failed_ || poisoned_) return;
    for (const NamePosition& over : expr->over) {
      VarId var = VarOf(scope_.dim_names[over.name], over.offset);
      if (var < 0) return;
      expr->vars.push_back(var);
      if (!Occurs(*expr->args[0], var)) ReportUnused(over, "softmax");
    }
  }

  static bool Occurs(const Expr& expr, VarId var) {
    if (expr.kind == ExprKind::kRead && std::count(expr.vars.begin(), expr.vars.end(), var) > 0)
      return true;
    for (const Expr* arg : expr.args) {
      if (Occurs(*arg, var)) return true;
    }
    return expr.otherwise != nullptr && Occurs(*expr.otherwise, var);
  }

  bool ShapeTemporary() {
    if (frames_[0].size() > kMaxRank) {
      return Fail(statement_.target.offset,
                  absl::StrCat(Quote(target_.name), " would have more than ", kMaxRank, " axes"),
                  "reduce some of the dims first");
    }
    if (statement_.bracketed && !frames_[0].empty()) {
      return Fail(
          statement_.target.offset,
          absl::StrCat(Quote(target_.name), " is written as a scalar, its expression has dims"),
          absl::StrCat("write ", target_.name, " = ...; or reduce them by `over`"));
    }
    for (const NamedVar& named : frames_[0]) {
      target_.axis_vars.push_back(named.var);
      target_.axes.push_back({scope_.DimExpr(named.dim), named.dim});
      target_.axis_names.push_back(scope_.dims[named.dim].name);
    }
    return true;
  }

  bool FillOutput() {
    if (!CheckNamed(target_, statement_.target.offset)) return false;
    for (const NamedVar& named : frames_[0]) {
      auto is_it = [&](const Axis& axis) { return axis.dim == named.dim; };
      if (std::any_of(target_.axes.begin(), target_.axes.end(), is_it)) continue;
      const std::string& dim = scope_.dims[named.dim].name;
      return Fail(statement_.target.offset,
                  absl::StrCat("the expression has a dim ", Quote(dim), ", the output ",
                               Quote(target_.name), " has none"),
                  absl::StrCat("reduce it, sum(... over [", dim, "]), or declare it: output ",
                               target_.name, "[...,", dim, "]"));
    }
    for (const Axis& axis : target_.axes) {
      VarId var = VarOf(axis.dim, statement_.target.offset);
      if (var < 0) return false;
      target_.axis_vars.push_back(var);
    }
    return true;
  }

  Scope& scope_;
  Statement& statement_;
  TensorSymbol& target_;
  const size_t first_var_;
  std::vector<std::vector<NamedVar>>
      frames_;  // the statement's own, then those of the reductions around
  bool failed_ = false, poisoned_ = false;
};

}  // namespace

bool ResolveByName(Scope* scope, Statement* statement, TensorSymbol* target) {
  return ByNameStatement(scope, statement, target).Run();
}

}  // namespace kiln::language
