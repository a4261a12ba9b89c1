// SPDX-License-Identifier: Apache-2.0
// Statements with subscripts: variables are named, reductions bind those that are neither axes nor
// bound around them, and a variable without `in` ranges over the dims where it stands alone.
#include <algorithm>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "proto/contract/language/check_int.h"
#include "proto/contract/language/limits.h"
#include "proto/contract/language/match_output.h"
#include "proto/contract/language/printer.h"
#include "proto/contract/language/resolve.h"
#include "proto/contract/language/words.h"

namespace kiln::language {
namespace {

struct LoneUse {
  int tensor = -1, axis = -1;
  size_t offset = 0;
};

struct ExplicitRange {
  VarId var;
  Expr* lo;
  Expr* hi;
};

bool Occurs(const Expr& expr, VarId var) {
  if (expr.kind == ExprKind::kRead && expr.reference == Reference::kVar && expr.index == var)
    return true;
  for (const Expr* arg : expr.args) {
    if (Occurs(*arg, var)) return true;
  }
  for (const RangeSyntax& range : expr.ranges) {
    if (Occurs(*range.lo, var) || Occurs(*range.hi, var)) return true;
  }
  return expr.otherwise != nullptr && Occurs(*expr.otherwise, var);
}

class SubscriptedStatement {
 public:
  SubscriptedStatement(Scope* scope, Statement* statement, TensorSymbol* target)
      : scope_(*scope), statement_(*statement), target_(*target), first_var_(scope->vars.size()) {}

  bool Run() {
    std::vector<AxisSyntax> axes = statement_.axes;
    if (!statement_.bracketed && !AxesOfBareTarget(&axes)) return false;
    if (!MakeAxes(axes)) return false;
    Walk(statement_.value);
    if (failed_ || poisoned_) return false;
    for (Expr* expr : ints_) {
      if (!CheckInt(&scope_, expr, IntPlace::kSubscript)) failed_ = true;
    }
    if (failed_) return false;
    for (const ExplicitRange& range : explicit_) scope_.SetRange(range.var, range.lo, range.hi);
    SetRangesOfLoneUses();
    if (!failed_) ShapeTarget();
    return !failed_;
  }

 private:
  bool Fail(size_t offset, std::string what, std::string hint) {
    scope_.errors.Add(offset, std::move(what), std::move(hint));
    failed_ = true;
    return false;
  }

  bool AxesOfBareTarget(std::vector<AxisSyntax>* axes) {
    if (target_.kind == TensorKind::kOutput) {
      return MatchOutputDims(&scope_, *statement_.value, target_, statement_.target.offset, axes);
    }
    return Fail(statement_.target.offset,
                absl::StrCat(Quote(target_.name), " needs its subscripts: the expression has some"),
                absl::StrCat("write ", target_.name, "[i,j] = ...; or ", target_.name,
                             "[] = ...; for a scalar"));
  }

  bool MakeAxes(const std::vector<AxisSyntax>& axes) {
    bool output = target_.kind == TensorKind::kOutput;
    if (output && axes.size() != target_.axes.size()) {
      return Fail(statement_.target.offset,
                  absl::StrCat(Quote(target_.name), " is declared with ", target_.axes.size(),
                               " axes and assigned with ", axes.size()),
                  "give one variable per axis");
    }
    for (size_t i = 0; i < axes.size(); ++i) {
      const AxisSyntax& axis = axes[i];
      if (Find(axis.name.name) >= 0) {
        return Fail(axis.name.offset,
                    absl::StrCat(Quote(axis.name.name), " stands twice on the left"),
                    "each axis has a variable of its own; a diagonal is i == j ? x[i] : 0");
      }
      VarId var = NewVar(&scope_, axis.name, first_var_);
      if (var < 0) {
        failed_ = true;
        continue;
      }
      in_scope_.emplace_back(axis.name.name, var);
      target_.axis_vars.push_back(var);
      Expr* extent = output ? target_.axes[i].extent : nullptr;
      if (axis.extent != nullptr) {
        if (!CheckExtent(&scope_, axis.extent, Quote(target_.name))) {
          failed_ = true;
          continue;
        }
        if (extent != nullptr && !scope_.SameExtent(*extent, *axis.extent)) {
          Fail(axis.extent->offset,
               absl::StrCat("the axis is declared as ", scope_.Describe(*extent), ", here it is ",
                            scope_.Describe(*axis.extent)),
               "leave the range out: an output's axis ranges over its declared dim");
        }
        extent = axis.extent;
      }
      if (extent != nullptr) scope_.SetRange(var, nullptr, extent);
    }
    return !failed_;
  }

  VarId Find(absl::string_view name) const {
    for (auto it = in_scope_.rbegin(); it != in_scope_.rend(); ++it) {
      if (it->first == name) return it->second;
    }
    return -1;
  }

  bool MayBeVariable(absl::string_view name) {
    return scope_.FindDim(name) == nullptr && scope_.FindTensor(name) == nullptr &&
           scope_.assigned_names.count(name) == 0;
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

  void WalkInt(Expr* expr) {
    Walk(expr);
    ints_.push_back(expr);
  }

  void WalkRead(Expr* expr) {
    VarId var = Find(expr->text);
    if (var >= 0) {
      if (expr->bracketed) {
        Fail(expr->offset, absl::StrCat(Quote(expr->text), " is a variable, it has no subscripts"),
             "give the variable another name than the tensor");
      }
      expr->reference = Reference::kVar;
      expr->index = var;
      return;
    }
    bool reported = false;
    if (!ResolveGlobal(&scope_, expr, &reported, &poisoned_)) {
      failed_ = true;
      if (!reported) ReportUnbound(expr);
      return;
    }
    for (Expr* subscript : expr->args) WalkInt(subscript);
    if (expr->otherwise != nullptr) Walk(expr->otherwise);
    if (expr->reference == Reference::kTensor) CheckRank(*expr);
  }

  void ReportUnbound(const Expr* expr) {
    if (!unbound_.insert(expr->text).second) return;
    Fail(expr->offset,
         absl::StrCat(Quote(expr->text),
                      " is neither a dim, a tensor, an axis nor bound by a reduction"),
         absl::StrCat("name it on the left, ", target_.name, "[", expr->text,
                      ", ...], or bind it: sum(", expr->text, " in 0..N: ...)"));
  }

  void CheckRank(const Expr& read) {
    const TensorSymbol& tensor = scope_.tensors[read.index];
    if (tensor.poisoned) return;
    if (!read.bracketed && !tensor.axes.empty()) {
      Fail(
          read.offset,
          absl::StrCat(Quote(read.text), " stands without subscripts in a statement that has some"),
          absl::StrCat("write ", tensor.name, "[...] with its ", tensor.axes.size(),
                       " subscripts"));
      return;
    }
    if (read.args.size() != tensor.axes.size()) {
      Fail(read.offset,
           absl::StrCat(Quote(read.text), " has ", tensor.axes.size(), " axes, ", read.args.size(),
                        " subscripts are given"),
           "give one subscript per axis");
      return;
    }
    for (size_t axis = 0; axis < read.args.size(); ++axis) {
      const Expr& subscript = *read.args[axis];
      if (subscript.reference != Reference::kVar || subscript.kind != ExprKind::kRead) continue;
      lone_uses_[subscript.index].push_back({read.index, static_cast<int>(axis), subscript.offset});
    }
  }

  void WalkReduction(Expr* expr) {
    size_t outside = in_scope_.size();
    for (RangeSyntax& range : expr->ranges) {
      WalkInt(range.lo);
      WalkInt(range.hi);
      VarId var = Bind(expr, range.name);
      if (var >= 0) explicit_.push_back({var, range.lo, range.hi});
      if (TooManyVars()) break;
    }
    for (const NamePosition& name : expr->over) {
      if (scope_.FindDim(name.name) != nullptr) {
        Fail(name.offset,
             absl::StrCat(Quote(name.name),
                          " is a dim; in a statement with subscripts `over` names variables"),
             "write sum(x[k] over [k])");
        continue;
      }
      Bind(expr, name);
    }
    if (expr->over.empty()) {
      std::vector<NamePosition> occurring;
      CollectDirect(*expr->args[0], {}, &occurring);
      for (const NamePosition& name : occurring) {
        Bind(expr, name);
        if (TooManyVars()) break;
      }
    }
    CheckBound(*expr);
    Walk(expr->args[0]);
    in_scope_.resize(outside);
  }

  // One report is enough.
  bool TooManyVars() const { return failed_ && scope_.vars.size() - first_var_ >= kMaxVariables; }

  VarId Bind(Expr* reduction, const NamePosition& name) {
    if (Find(name.name) >= 0) {
      Fail(name.offset,
           absl::StrCat(Quote(name.name), " is an axis or bound already around the reduction"),
           "give the reduction a variable of its own");
      return -1;
    }
    VarId var = NewVar(&scope_, name, first_var_);
    if (var < 0) {
      failed_ = true;
      return -1;
    }
    in_scope_.emplace_back(name.name, var);
    reduction->vars.push_back(var);
    return var;
  }

  void CheckBound(const Expr& reduction) {
    if (failed_) return;
    absl::string_view name = ReductionName(reduction.reduce);
    bool extremum = reduction.reduce == ReduceOp::kMax || reduction.reduce == ReduceOp::kMin;
    if (reduction.vars.empty()) {
      Fail(reduction.offset,
           absl::StrCat(name, " binds no variable: all in it are axes or bound around it"),
           extremum ? absl::StrCat("element by element it takes two arguments: ", name, "(a, b)")
                    : absl::StrCat("name what it runs over: ", name, "(k in 0..K: ...)"));
    }
    bool place = reduction.reduce == ReduceOp::kArgmax || reduction.reduce == ReduceOp::kArgmin;
    if (place && reduction.vars.size() > 1) {
      Fail(reduction.offset,
           absl::StrCat(name, " binds ", reduction.vars.size(),
                        " variables, it gives the value of one"),
           "run over one variable; fold two axes into one to search both");
    }
  }

  // Names that occur outside nested reductions and mean nothing yet, in order of appearance. The
  // bounds of a nested reduction count as outside, but for the variables of its own that they use.
  void CollectDirect(const Expr& expr, const std::set<absl::string_view>& bound_here,
                     std::vector<NamePosition>* names) {
    auto add = [&](const Expr& read) {
      if (Find(read.text) >= 0 || !MayBeVariable(read.text) || bound_here.count(read.text) > 0)
        return;
      if (names->size() > kMaxVariables) return;  // too many are reported when they are bound
      for (const NamePosition& seen : *names) {
        if (seen.name == read.text) return;
      }
      names->push_back({read.text, read.offset});
    };
    if (expr.kind == ExprKind::kRead && !expr.bracketed) return add(expr);
    if (expr.kind == ExprKind::kReduce) {
      std::set<absl::string_view> bound_there = bound_here;
      for (const RangeSyntax& range : expr.ranges) {
        CollectDirect(*range.lo, bound_there, names);
        CollectDirect(*range.hi, bound_there, names);
        bound_there.insert(range.name.name);
      }
      return;
    }
    for (const Expr* arg : expr.args) CollectDirect(*arg, bound_here, names);
    if (expr.otherwise != nullptr) CollectDirect(*expr.otherwise, bound_here, names);
  }

  void WalkSoftmax(Expr* expr) {
    Walk(expr->args[0]);
    for (const NamePosition& name : expr->over) {
      VarId var = Find(name.name);
      if (var < 0) {
        Fail(
            name.offset,
            absl::StrCat(Quote(name.name), " is no variable here; softmax keeps what it runs over"),
            absl::StrCat("name it on the left, ", target_.name, "[..., ", name.name,
                         "], or bind it around the softmax"));
        continue;
      }
      expr->vars.push_back(var);
      if (!failed_ && !Occurs(*expr->args[0], var)) {
        Fail(name.offset,
             absl::StrCat(Quote(name.name), " does not occur in what softmax runs over"),
             "run over a variable of the expression");
      }
    }
  }

  void SetRangesOfLoneUses() {
    for (size_t var = first_var_; var < scope_.vars.size(); ++var) {
      if (scope_.vars[var].ranged) continue;
      const std::vector<LoneUse>& uses = lone_uses_[static_cast<VarId>(var)];
      const std::string& name = scope_.vars[var].name;
      if (uses.empty() && scope_.IsDoubtful(name)) {
        failed_ = true;
        continue;
      }
      if (uses.empty()) {
        Fail(scope_.vars[var].offset,
             absl::StrCat(Quote(name), " has no range: it stands alone in no subscript"),
             absl::StrCat("give it one: ", name, " in 0..N"));
        continue;
      }
      Expr* extent = scope_.tensors[uses[0].tensor].axes[uses[0].axis].extent;
      for (const LoneUse& use : uses) {
        const TensorSymbol& tensor = scope_.tensors[use.tensor];
        if (scope_.SameExtent(*extent, *tensor.axes[use.axis].extent)) continue;
        Fail(use.offset,
             absl::StrCat(Quote(name), " ranges over axis ", uses[0].axis, " of ",
                          scope_.tensors[uses[0].tensor].name, ", ", scope_.Describe(*extent),
                          ", and here over axis ", use.axis, " of ", tensor.name, ", ",
                          scope_.Describe(*tensor.axes[use.axis].extent)),
             absl::StrCat("make the dims equal, or give the range: ", name, " in 0..",
                          ShowExpr(*extent)));
      }
      scope_.SetRange(static_cast<VarId>(var), nullptr, extent);
    }
  }

  void ShapeTarget() {
    if (target_.kind == TensorKind::kOutput) return;
    for (VarId var : target_.axis_vars) {
      Expr* extent = scope_.vars[var].hi;
      int dim = extent->reference == Reference::kDim ? extent->index : -1;
      target_.axes.push_back({extent, dim});
      target_.axis_names.push_back(dim >= 0 ? scope_.dims[dim].name : scope_.vars[var].name);
    }
  }

  Scope& scope_;
  Statement& statement_;
  TensorSymbol& target_;
  const size_t first_var_;
  std::vector<std::pair<absl::string_view, VarId>> in_scope_;  // inner ones last
  std::map<VarId, std::vector<LoneUse>> lone_uses_;            // in order of the text
  std::vector<ExplicitRange> explicit_;
  std::vector<Expr*> ints_;
  std::set<absl::string_view> unbound_;
  bool failed_ = false, poisoned_ = false;
};

}  // namespace

bool ResolveSubscripted(Scope* scope, Statement* statement, TensorSymbol* target) {
  return SubscriptedStatement(scope, statement, target).Run();
}

}  // namespace kiln::language
