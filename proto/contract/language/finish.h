// SPDX-License-Identifier: Apache-2.0
// From built nodes to the graph: what no output needs is dropped, and what remains is numbered in
// the order in which the outputs come to it, so that the place of temporaries in the text leaves no
// trace.
#pragma once

#include "proto/contract/language/build.h"

namespace kiln::language {

// Errors of size (nodes, tensors) go to the diagnostics.
Graph FinishGraph(Scope* scope, const Built& built);

}  // namespace kiln::language
