// SPDX-License-Identifier: Apache-2.0
// Integer nodes as affine functions of their free variables: what subscripts, extents and bounds
// nearly always are. Computed once for all nodes of a static graph, in time linear in it. Immutable
// afterwards, thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "proto/contract/graph.h"

namespace kiln::compiler {

// constant + sum of coefficients[v] * variable v.
struct Affine {
  int64_t constant = 0;
  std::vector<int64_t> coefficients;  // one per variable of the scope

  bool is_constant() const;
  int variables_used() const;  // coefficients that are not 0
  bool operator==(const Affine&) const = default;
};

class AffineTable {
 public:
  explicit AffineTable(const Graph& graph);

  // The node in terms of its own free variables; nothing if it is not affine, overflows or needs a
  // dynamic dim.
  const std::optional<Affine>& OfNode(NodeId node) const { return nodes_[node]; }
  // The term in a scope of `variables` variables; `map` (if given) renames the enclosing node's
  // variables to the scope's.
  std::optional<Affine> OfTerm(const Term& term, int variables,
                               const std::vector<int>* map = nullptr) const;
  // The value of a term that depends on nothing.
  std::optional<int64_t> ConstantOf(const Term& term) const;

 private:
  std::optional<Affine> Compute(const Node& node) const;

  std::vector<std::optional<Affine>> nodes_;
};

}  // namespace kiln::compiler
