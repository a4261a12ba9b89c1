// SPDX-License-Identifier: Apache-2.0
// From the checked tree to nodes: temporaries are replaced by their expressions, types are made
// explicit (every operand has the type that its operation computes in), constants are folded.
#pragma once

#include <vector>

#include "proto/contract/language/node_pool.h"
#include "proto/contract/language/scope.h"

namespace kiln::language {

struct Definition {
  int tensor = -1;  // in Scope::tensors
  Term value;       // applied to the tensor's axes
};

struct Built {
  NodePool pool;
  // One per tensor of the scope; closed, one per axis. Empty for temporaries that do not stay.
  std::vector<std::vector<Applied>> shapes;
  // Outputs and temporaries that stay, in the order of the text; of temporaries that say the same,
  // the first alone.
  std::vector<Definition> definitions;
};

// The scope holds no errors. Reads name tensors by their place in Scope::tensors.
Built BuildNodes(Scope* scope);

}  // namespace kiln::language
