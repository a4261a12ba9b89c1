// SPDX-License-Identifier: Apache-2.0
// Whether an expression is an `int` of the grammar: what may stand in extents, subscripts and
// bounds.
#pragma once

#include "proto/contract/language/scope.h"

namespace kiln::language {

enum class IntPlace {
  kExtent,     // of a declaration or axis: integers and dims only; names are resolved here
  kSubscript,  // and bounds: variables and reads of integer tensors too; names are resolved already
};

// Reports what is wrong; true if nothing is.
bool CheckInt(Scope* scope, Expr* expr, IntPlace place);

// CheckInt as an extent, and its value: 0 to kMaxExtent under every binding.
bool CheckExtent(Scope* scope, Expr* expr, absl::string_view of_what);

// Whether only integers and dims stand in a checked one.
bool IsClosed(const Expr& expr);

}  // namespace kiln::language
