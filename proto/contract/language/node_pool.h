// SPDX-License-Identifier: Apache-2.0
// Nodes as functions of their variables, equal ones once (graph.h). While a statement is built, a
// node stands applied to the variables of the statement; here they are renumbered by first
// appearance. Not thread-safe.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "proto/contract/graph.h"
#include "proto/contract/language/ast.h"

namespace kiln::language {

// A node applied to variables of a statement, which are distinct: one per free variable.
struct Applied {
  NodeId node = -1;
  std::vector<VarId> vars;
};

struct AppliedRange {
  VarId var = -1;
  Applied lo, hi;
};

class NodePool {
 public:
  Applied Literal(DType type, double number);  // f32, f64: rounded to f32 for f32, one NaN
  Applied Integer(DType type, int64_t value);  // i32, i64, bool
  Applied Dim(int dynamic_dim);
  Applied Var(VarId var);

  // A node over arguments. `node` has op, type and what else the op needs; arguments and variables
  // are filled in.
  Applied Make(Node node, const std::vector<Applied>& args);
  // A reduction, or a softmax (whose free variables hold the bound ones again, in `at`). The ranges
  // are put in the order in which their variables first appear in the body, as far as their bounds
  // allow.
  Applied Bind(Node node, const Applied& body, std::vector<AppliedRange> ranges);

  // The same node once: its id if an equal one is there.
  NodeId Intern(Node node);

  const std::vector<Node>& nodes() const { return nodes_; }
  const Node& at(NodeId id) const { return nodes_[id]; }

 private:
  std::vector<Node> nodes_;
  std::unordered_map<std::string, NodeId> known_;
};

}  // namespace kiln::language
