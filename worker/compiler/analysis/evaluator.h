// SPDX-License-Identifier: Apache-2.0
// Evaluates terms of a static graph at given values of their variables. Reductions and shared nodes
// are remembered by (node, variables), so that a program costs about as many operations as it has
// elements and terms. Owned by one Interpret call; not thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <unordered_map>
#include <vector>

#include "absl/status/status.h"
#include "proto/contract/graph.h"
#include "worker/compiler/analysis/host_tensor.h"
#include "worker/compiler/analysis/scalar.h"

namespace kiln::compiler {

class Evaluator {
 public:
  // `tensors`, by the graph's index, are read when a term reads them; both outlive the evaluator.
  Evaluator(const Graph& graph, const std::vector<HostTensor>& tensors, Arithmetic arithmetic);

  // `variables`: of the enclosing scope, which the term's `vars` index. After an error the value
  // means nothing.
  Scalar Evaluate(const Term& term, const std::vector<int64_t>& variables);

  // OUT_OF_RANGE once a subscript without `else` fell outside its tensor.
  const absl::Status& status() const { return status_; }

 private:
  using Variables = std::vector<int64_t>;
  struct Hash {
    size_t operator()(const Variables& key) const;
  };
  struct SoftmaxRow {
    double greatest = 0, sum = 0;
  };

  Scalar EvaluateNode(NodeId id, const Variables& own);
  Scalar Dispatch(NodeId id, const Variables& own);
  Scalar Read(const Node& node, const Variables& own);
  Scalar Reduce(const Node& node, const Variables& own);
  Scalar ArgReduce(const Node& node, const Variables& own);
  Scalar Softmax(NodeId id, const Variables& own);
  // Calls `visit` with the free and bound variables of every point of the node's ranges, in order.
  void ForEachPoint(const Node& node, const Variables& own,
                    const std::function<void(const Variables&)>& visit);
  double Round(DType type, double value) const;  // as an accumulator of this type holds it

  const Graph& graph_;
  const std::vector<HostTensor>& tensors_;
  const Arithmetic arithmetic_;
  absl::Status status_;
  std::vector<bool> remembered_;  // by node
  std::vector<std::unordered_map<Variables, Scalar, Hash>> memory_;
  std::vector<std::unordered_map<Variables, SoftmaxRow, Hash>> rows_;
};

}  // namespace kiln::compiler
