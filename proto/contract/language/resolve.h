// SPDX-License-Identifier: Apache-2.0
// The second half of what names mean: statement by statement, which variable each name is, who
// binds it, what it ranges over, and the shapes of temporaries (LANGUAGE.md section 3). Writes
// Expr::reference, index and vars. A statement with subscripts and one without are read by
// different rules and come out alike.
#pragma once

#include "proto/contract/language/scope.h"

namespace kiln::language {

// Resolves all assignments in order. Errors go to the diagnostics; a tensor whose statement has one
// is poisoned.
void ResolveProgram(Scope* scope);

// The two readings of one statement; `target` is the tensor that it assigns, an output or a new
// temporary without axes yet. False if an error was reported or a poisoned tensor is read.
bool ResolveSubscripted(Scope* scope, Statement* statement, TensorSymbol* target);
bool ResolveByName(Scope* scope, Statement* statement, TensorSymbol* target);

// The tensor or dim of a name that is no variable, as both readings need it. kTensor and kDim are
// written to the expression. False if the name is unknown (nothing is reported), or if an error was
// reported (`*reported`).
bool ResolveGlobal(Scope* scope, Expr* read, bool* reported, bool* poisoned);

// A new variable of the statement at hand. -1 with an error if there are too many or a dim or
// tensor has the name.
VarId NewVar(Scope* scope, const NamePosition& name, size_t first_of_statement);

}  // namespace kiln::language
