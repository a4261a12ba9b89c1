// SPDX-License-Identifier: Apache-2.0
// Types of expressions (LANGUAGE.md section 5) and the values of those that hold literals alone.
// Writes Expr::inferred and prefix.
#pragma once

#include "proto/contract/language/scope.h"

namespace kiln::language {

// Infers all statements in order. Errors go to the diagnostics; the tensor of a wrong statement is
// poisoned.
void InferProgram(Scope* scope);

// The compute type of an expression that nothing else gives a type: what a reduction runs over, an
// untyped temporary that stays. i32 or i64 for whole ones, else f32.
DType DefaultType(const Inferred& inferred);

// The type that an expression over both computes in; nothing for literals alone. bool counts as
// i32.
std::optional<DType> JoinTypes(std::optional<DType> a, std::optional<DType> b);

// Folding of literals, in f64. Nothing for what is not exact everywhere (exp, sin, ...).
std::optional<Constant> FoldUnary(Op op, const Constant& a);
std::optional<Constant> FoldBinary(Op op, const Constant& a, const Constant& b);
// Whether the value is an integer (inf and nan are none).
bool IsWhole(const Constant& constant);
// The value as an integer of the given bits, if it is one and fits.
std::optional<int64_t> AsInteger(const Constant& constant, int bits);

}  // namespace kiln::language
