// SPDX-License-Identifier: Apache-2.0
// Text to syntax tree (LANGUAGE.md section 2). Reports all independent syntax errors: after one it
// goes on at the next statement. Linear; recursion is bounded by kMaxNesting.
#pragma once

#include "absl/strings/string_view.h"
#include "proto/contract/language/ast.h"
#include "proto/contract/language/diagnostics.h"

namespace kiln::language {

// `text` must outlive the program, which points into it.
Program ParseProgram(absl::string_view text, Diagnostics* errors);

}  // namespace kiln::language
