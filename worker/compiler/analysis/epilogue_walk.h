// SPDX-License-Identifier: Apache-2.0
// Finds the one reduction below an output's definition and the reads beside it, through elementwise
// nodes only. Used by the matchers of families that fuse an epilogue. Pure.
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "proto/contract/graph.h"

namespace kiln::compiler {

struct EpilogueWalk {
  Term sum;  // the reduction, applied to the output's axes
  std::vector<Term>
      reads;  // distinct reads outside of it, applied to the output's axes, by first appearance
};

// outer[inner[i]] for each i: a term's variables seen from the scope that its enclosing node is
// applied in.
std::vector<int> Compose(const std::vector<int>& inner, const std::vector<int>& outer);

// UNIMPLEMENTED with a reason: no reduction or several, softmax, an index used as a number, a
// number that is neither bool nor `type`, a tree that is too large.
absl::StatusOr<EpilogueWalk> WalkEpilogue(const Graph& graph, const Term& definition, DType type);

}  // namespace kiln::compiler
