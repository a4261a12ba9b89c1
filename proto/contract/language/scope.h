// SPDX-License-Identifier: Apache-2.0
// What the names of a program mean: dims with their values, tensors with their shapes, the
// variables of each statement with their ranges. Filled by declare and resolve, read by all later
// stages. Not thread-safe.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "proto/contract/language/affine.h"
#include "proto/contract/language/ast.h"
#include "proto/contract/language/diagnostics.h"
#include "proto/contract/spec.h"

namespace kiln::language {

struct Dim {
  std::string name;
  size_t offset = 0;
  DimBinding range;
  int dynamic = -1;  // position among the dynamic dims; -1: static
};

struct Axis {
  Expr* extent = nullptr;  // over integers and dims only
  int dim = -1;  // the dim that the extent is, and nothing else; -1: it is another expression
};

struct TensorSymbol {
  TensorKind kind = TensorKind::kInput;
  std::string name;
  size_t offset = 0;
  std::optional<DType> type;  // none: an untyped temporary
  std::vector<Axis> axes;
  Statement* definition = nullptr;  // outputs and temporaries, once they are assigned
  std::vector<VarId> axis_vars;     // of the definition, one per axis
  std::vector<std::string> axis_names;
  bool poisoned = false;  // an error was reported in it: readers stay silent
  bool live = false;      // an output depends on it; written by liveness
  bool stays = false;     // is a tensor of the graph, not only a name for its expression; likewise
};

struct Var {
  std::string name;
  size_t offset = 0;
  Expr* lo = nullptr;  // null: 0
  Expr* hi = nullptr;  // exclusive
  bool ranged = false;
};

struct Scope {
  Scope(Program* program_in, Diagnostics* errors_in) : program(*program_in), errors(*errors_in) {}

  Program& program;
  Diagnostics& errors;
  std::vector<Dim> dims;
  std::vector<TensorSymbol>
      tensors;  // inputs, constants, outputs as declared; temporaries as defined
  std::vector<Var> vars;
  std::map<absl::string_view, int> dim_names, tensor_names;
  // Names that are assigned anywhere and their first place: a variable may bear none of them.
  std::map<absl::string_view, size_t> assigned_names;
  std::unique_ptr<Affine> affine;  // once the dims are bound

  const Dim* FindDim(absl::string_view name) const;
  TensorSymbol* FindTensor(absl::string_view name);

  // The polynomial of an integer expression whose names are resolved (check_int.h has found nothing
  // wrong with it).
  Polynomial PolynomialOf(const Expr& expr);
  // Whether a syntax error may be why the name is not known: nothing is said of it then.
  bool IsDoubtful(absl::string_view name) const { return program.doubtful_names.count(name) > 0; }
  // Sets the range in `vars` and in `affine`.
  void SetRange(VarId var, Expr* lo, Expr* hi);
  // An expression that is just the dim.
  Expr* DimExpr(int dim);
  // Whether two extents are equal under every binding.
  bool SameExtent(const Expr& a, const Expr& b);
  // PolynomialOf of an extent, which many reads ask for.
  const Polynomial& ExtentOf(const Expr& extent);
  // "512", "M (512)", "M+1 (1..4097)": an extent with its value, for messages.
  std::string Describe(const Expr& extent);

 private:
  std::map<int, Expr*> dim_exprs_;
  std::map<const Expr*, Polynomial> extents_;  // found already
};

}  // namespace kiln::language
