// SPDX-License-Identifier: Apache-2.0
// What the reference computes once and keeps: each reduction and softmax row over the box of all
// values that its free variables take anywhere in the program. Immutable, thread-safe.
#pragma once

#include <cstdint>
#include <vector>

#include "proto/contract/graph.h"

namespace kiln::compiler {

// Per free variable of a node: the values lo .. lo + extent - 1.
struct Box {
  std::vector<int64_t> lo, extent;
  int64_t elements() const;
};

// Whether a free variable of a softmax only says where its row is read.
bool IsPlace(const Node& node, int variable);

class ReferencePlan {
 public:
  explicit ReferencePlan(const Graph& graph);

  // Whether the node's values are computed once, in a stage of their own. A reduction whose
  // variables' values depend on data over a wide range is not: it is computed where it is used.
  bool IsKept(NodeId node) const { return kept_[node]; }
  const Box& BoxOf(NodeId node) const { return boxes_[node]; }
  // The node's value depends on the contents of a tensor.
  bool ReadsData(NodeId node) const { return reads_data_[node]; }
  // Kept nodes below a definition, arguments before users.
  std::vector<NodeId> KeptBelow(const Term& definition) const;

 private:
  void Widen(const Term& term, const std::vector<Interval>& scope);

  const Graph& graph_;
  std::vector<std::vector<Interval>> hulls_;
  std::vector<Box> boxes_;
  std::vector<bool> kept_, reads_data_;
};

}  // namespace kiln::compiler
