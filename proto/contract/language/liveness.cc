// SPDX-License-Identifier: Apache-2.0
#include "proto/contract/language/liveness.h"

#include <set>

namespace kiln::language {
namespace {

class Liveness {
 public:
  explicit Liveness(Scope* scope) : scope_(*scope) {}

  // Statements only read what was assigned before them, so that one pass from the last to the first
  // is enough. The tensors stand in the order of declaration, which is not that of assignment:
  // hence the statements.
  void Run() {
    for (TensorSymbol& tensor : scope_.tensors) {
      tensor.live = tensor.kind != TensorKind::kTemporary;
      tensor.stays = tensor.live || tensor.type.has_value();
    }
    auto& statements = scope_.program.statements;
    for (auto statement = statements.rbegin(); statement != statements.rend(); ++statement) {
      if (statement->target.name.empty()) continue;
      const TensorSymbol* target = scope_.FindTensor(statement->target.name);
      if (target == nullptr || target->definition != &*statement) continue;
      if (target->live && !target->poisoned) Walk(*statement->value);
    }
  }

 private:
  void Walk(const Expr& expr) {
    if (expr.kind == ExprKind::kRead && expr.reference == Reference::kTensor) {
      TensorSymbol& tensor = scope_.tensors[expr.index];
      tensor.live = true;
      if (!ReadsPlainly(expr)) tensor.stays = true;
    }
    for (const Expr* arg : expr.args) Walk(*arg);
    for (const RangeSyntax& range : expr.ranges) {
      Walk(*range.lo);
      Walk(*range.hi);
    }
    if (expr.otherwise != nullptr && !expr.always_inside) Walk(*expr.otherwise);
  }

  static bool ReadsPlainly(const Expr& read) {
    if (read.otherwise != nullptr && !read.always_inside) return false;
    std::set<VarId> seen;
    for (const Expr* subscript : read.args) {
      bool lone = subscript->kind == ExprKind::kRead && subscript->reference == Reference::kVar;
      if (!lone || !seen.insert(subscript->index).second) return false;
    }
    return true;
  }

  Scope& scope_;
};

}  // namespace

void FindLive(Scope* scope) { Liveness(scope).Run(); }

}  // namespace kiln::language
