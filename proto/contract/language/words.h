// SPDX-License-Identifier: Apache-2.0
// The reserved words: keywords and the names of functions and reductions, and what people write who
// come from elsewhere.
#pragma once

#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "proto/contract/graph.h"

namespace kiln::language {

// Functions of one argument ("exp"); kMin and kMax are reductions by name and element-wise by their
// second argument.
std::optional<Op> FindFunction(absl::string_view word);
std::optional<ReduceOp> FindReduction(absl::string_view word);
absl::string_view FunctionName(Op op);         // "exp", "min"
absl::string_view ReductionName(ReduceOp op);  // "sum"
absl::string_view OperatorSign(Op op);         // "+", "<=", "!"; empty if it has none

// Whether no dim, tensor or variable may bear the name.
bool IsReserved(absl::string_view word);

// What to write instead of a foreign function or statement ("cumsum", "rand", "for"); empty if
// nothing is known.
absl::string_view ForeignHint(absl::string_view word);

}  // namespace kiln::language
