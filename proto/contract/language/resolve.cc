// SPDX-License-Identifier: Apache-2.0
#include "proto/contract/language/resolve.h"

#include "absl/strings/str_cat.h"
#include "proto/contract/language/limits.h"

namespace kiln::language {
namespace {

// Whether anything but empty brackets says that variables are named here.
bool HasSubscripts(const Expr& expr) {
  if (expr.kind == ExprKind::kRead && !expr.args.empty()) return true;
  if (!expr.ranges.empty()) return true;
  for (const Expr* arg : expr.args) {
    if (HasSubscripts(*arg)) return true;
  }
  return expr.otherwise != nullptr && HasSubscripts(*expr.otherwise);
}

// Whether the tensor is read in the expression, for recurrences.
const Expr* FindRead(const Expr& expr, absl::string_view name) {
  if (expr.kind == ExprKind::kRead && expr.text == name) return &expr;
  for (const Expr* arg : expr.args) {
    if (const Expr* read = FindRead(*arg, name)) return read;
  }
  for (const RangeSyntax& range : expr.ranges) {
    if (const Expr* read = FindRead(*range.lo, name)) return read;
    if (const Expr* read = FindRead(*range.hi, name)) return read;
  }
  return expr.otherwise != nullptr ? FindRead(*expr.otherwise, name) : nullptr;
}

class Resolver {
 public:
  explicit Resolver(Scope* scope) : scope_(*scope) {}

  void Run() {
    for (Statement& statement : scope_.program.statements) {
      if (statement.target.name.empty()) continue;
      TensorSymbol* target = MakeTarget(&statement);
      if (target == nullptr) continue;
      if (statement.broken || statement.value == nullptr || !Resolve(&statement, target)) {
        target->poisoned = true;
      }
    }
    bool has_output = false;
    for (const TensorSymbol& tensor : scope_.tensors) {
      if (tensor.kind != TensorKind::kOutput) continue;
      has_output = true;
      if (tensor.definition == nullptr && !scope_.IsDoubtful(tensor.name)) {
        scope_.errors.Add(tensor.offset,
                          absl::StrCat("output ", Quote(tensor.name), " is never assigned"),
                          absl::StrCat("write ", tensor.name, "[...] = ...;"));
      }
    }
    if (!has_output && !scope_.program.broken_declarations) {
      scope_.errors.Add(scope_.program.name.offset, "the program has no output",
                        "declare one: output y[N];");
    }
  }

 private:
  // The output, or a temporary made for it; null after an error.
  TensorSymbol* MakeTarget(Statement* statement) {
    absl::string_view name = statement->target.name;
    size_t offset = statement->target.offset;
    if (scope_.FindDim(name) != nullptr) {
      scope_.errors.Add(offset, absl::StrCat(Quote(name), " is a dim and cannot be assigned"),
                        "dims and tensors share one name space: choose another name");
      return nullptr;
    }
    TensorSymbol* tensor = scope_.FindTensor(name);
    if (tensor == nullptr) {
      TensorSymbol temporary;
      temporary.kind = TensorKind::kTemporary;
      temporary.name = std::string(name.data(), name.size());
      temporary.offset = offset;
      temporary.type = statement->type;
      temporary.definition = statement;
      scope_.tensor_names[name] = static_cast<int>(scope_.tensors.size());
      scope_.tensors.push_back(std::move(temporary));
      return &scope_.tensors.back();
    }
    if (tensor->kind == TensorKind::kInput || tensor->kind == TensorKind::kConstant) {
      scope_.errors.Add(
          offset, absl::StrCat(Quote(name), " is an input and cannot be assigned"),
          "assign an output; to work in place declare the output as an alias of the input");
      return nullptr;
    }
    if (tensor->definition != nullptr) {
      scope_.errors.Add(offset, absl::StrCat(Quote(name), " is assigned a second time"),
                        "each tensor is assigned once: give the second value a name of its own");
      return nullptr;
    }
    tensor->definition = statement;
    if (statement->type) {
      scope_.errors.Add(
          offset, absl::StrCat("the type of output ", Quote(name), " stands where it is declared"),
          absl::StrCat("write output ", name, "[...] : TYPE;"));
      tensor->poisoned = true;
    }
    return tensor;
  }

  bool Resolve(Statement* statement, TensorSymbol* target) {
    if (const Expr* read = FindRead(*statement->value, statement->target.name)) {
      scope_.errors.Add(read->offset,
                        absl::StrCat(Quote(read->text), " is read in its own definition"),
                        "there are no recurrences and no loops; a prefix sum is "
                        "y[i] = sum(j in 0..i+1: x[j])");
      return false;
    }
    if (target->poisoned) return false;
    bool subscripted = !statement->axes.empty() || HasSubscripts(*statement->value);
    // The stages below may not hold on to `target`: they add no tensors.
    return subscripted ? ResolveSubscripted(&scope_, statement, target)
                       : ResolveByName(&scope_, statement, target);
  }

  Scope& scope_;
};

}  // namespace

bool ResolveGlobal(Scope* scope, Expr* read, bool* reported, bool* poisoned) {
  if (const Dim* dim = scope->FindDim(read->text)) {
    if (read->bracketed) {
      scope->errors.Add(read->offset,
                        absl::StrCat(Quote(read->text), " is a dim, it has no subscripts"),
                        "write the dim's name alone");
      *reported = true;
      return false;
    }
    read->reference = Reference::kDim;
    read->index = static_cast<int>(dim - scope->dims.data());
    return true;
  }
  if (const TensorSymbol* tensor = scope->FindTensor(read->text)) {
    if (tensor->kind == TensorKind::kOutput && tensor->definition == nullptr &&
        !scope->IsDoubtful(read->text)) {
      scope->errors.Add(
          read->offset,
          absl::StrCat("output ", Quote(read->text), " is read before it is assigned"),
          "move the statement that assigns it up");
      *reported = true;
      return false;
    }
    read->reference = Reference::kTensor;
    read->index = static_cast<int>(tensor - scope->tensors.data());
    *poisoned = *poisoned || tensor->poisoned;
    return true;
  }
  if (scope->IsDoubtful(read->text)) {
    *poisoned = true;
    *reported = true;
  } else if (scope->assigned_names.count(read->text) > 0) {
    scope->errors.Add(read->offset,
                      absl::StrCat(Quote(read->text), " is read before it is assigned"),
                      "move the statement that assigns it up");
    *reported = true;
  } else if (read->bracketed) {
    scope->errors.Add(read->offset, absl::StrCat("there is no tensor ", Quote(read->text)),
                      absl::StrCat("declare it: input ", read->text, "[...];"));
    *reported = true;
  }
  return false;
}

VarId NewVar(Scope* scope, const NamePosition& name, size_t first_of_statement) {
  bool is_dim = scope->FindDim(name.name) != nullptr;
  if (is_dim || scope->FindTensor(name.name) != nullptr ||
      scope->assigned_names.count(name.name) > 0) {
    scope->errors.Add(name.offset,
                      absl::StrCat(Quote(name.name), is_dim ? " is a dim" : " is a tensor",
                                   ", a variable cannot bear its name"),
                      "choose another name for the variable");
    return -1;
  }
  if (scope->vars.size() - first_of_statement >= kMaxVariables) {
    scope->errors.Add(name.offset,
                      absl::StrCat("more than ", kMaxVariables, " variables in one statement"),
                      "split the statement: give a part of it a name");
    return -1;
  }
  Var var;
  var.name = std::string(name.name.data(), name.name.size());
  var.offset = name.offset;
  scope->vars.push_back(std::move(var));
  return static_cast<VarId>(scope->vars.size()) - 1;
}

void ResolveProgram(Scope* scope) {
  for (const Statement& statement : scope->program.statements) {
    for (const DeclSyntax& decl : statement.decls) {
      scope->assigned_names.try_emplace(decl.name.name, decl.name.offset);
    }
    if (!statement.target.name.empty()) {
      scope->assigned_names.try_emplace(statement.target.name, statement.target.offset);
    }
  }
  // Temporaries are added while pointers to tensors are held.
  scope->tensors.reserve(scope->tensors.size() + scope->program.statements.size());
  Resolver(scope).Run();
}

}  // namespace kiln::language
