// SPDX-License-Identifier: Apache-2.0
// Epilogues: from the graph's tree over a sum to the tile program's expression. Pure.
#pragma once

#include "absl/status/statusor.h"
#include "worker/compiler/analysis/contraction.h"
#include "worker/compiler/tile/program.h"

namespace kiln::compiler {

// UNIMPLEMENTED with the reason if the tree holds an operation that expressions have not.
absl::StatusOr<tile::Expression> MakeEpilogue(const Graph& graph, const ContractionForm& form);

}  // namespace kiln::compiler
