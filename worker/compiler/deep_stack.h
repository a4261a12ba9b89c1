// SPDX-License-Identifier: Apache-2.0
// Terms are followed to their arguments by recursion, and the language allows chains of thousands
// of operations: more than a usual stack holds in every function that does so.
#pragma once

#include "absl/functional/function_ref.h"

namespace kiln::compiler {

// Runs `work` to its end on a thread of its own with a stack for the longest chain there can be.
// Where the system refuses such a thread, on the caller's.
void OnDeepStack(absl::FunctionRef<void()> work);

}  // namespace kiln::compiler
