// SPDX-License-Identifier: Apache-2.0
// Writes C++ statements that compute terms of a graph in f64, each with a bound of its error. One
// body is the inside of one stage of the reference. Not thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "proto/contract/graph.h"
#include "proto/contract/spec.h"
#include "worker/compiler/analysis/affine.h"
#include "worker/compiler/analysis/reference_plan.h"

namespace kiln::compiler {

// How a float type rounds and what it can hold.
struct Rounding {
  double unit;  // roundoff: half a unit in the last place of 1
  double
      floor;   // largest error of rounding a denormal; where denormals may flush, the least normal
  double top;  // greatest finite value
};
Rounding RoundingOf(DType type, bool flush);

// A value in the emitted code. Errors are exact (0), relative (coefficient * |value|, not yet
// written), or a variable.
struct ReferenceValue {
  enum class Error { kExact, kRelative, kNamed };
  std::string text;
  DType type = DType::kF32;
  Error kind = Error::kExact;
  double coefficient = 0;
  std::string error;
};

// What all stages share. `inexact_*`: has an array of errors.
struct ReferenceScene {
  const Graph& graph;
  const Policy& policy;
  ReferencePlan plan;
  AffineTable affine;
  std::vector<bool> inexact_nodes, inexact_tensors;
};

// The free variable to loop over innermost, in the emitted code.
struct InnerLoop {
  std::string variable, begin, end;
  int64_t slots = 1;  // at most end - begin
};

class ReferenceBody {
 public:
  explicit ReferenceBody(ReferenceScene& scene);

  // `scope`: C++ names of the enclosing node's variables.
  ReferenceValue Emit(const Term& term, const std::vector<std::string>& scope);
  ReferenceValue EmitInteger(const Term& term,
                             const std::vector<std::string>& scope);  // of subscripts, bounds
  ReferenceValue ConvertTo(DType type, const ReferenceValue& value);
  // cast(value, storage).
  ReferenceValue Cast(DType storage, const ReferenceValue& value) {
    return EmitCast(storage, value);
  }
  // The error as an expression ("0.0" if exact).
  std::string ErrorOf(const ReferenceValue& value);

  // Accumulates a reduction: slots `inner->begin..end`, or one (slot 0 after the loops). Result
  // gives a slot's value.
  struct Accumulators {
    std::string id;
    const Node* node = nullptr;
    ReferenceValue::Error kind = ReferenceValue::Error::kExact;  // of the terms
    double coefficient = 0;
  };
  Accumulators EmitReduction(const Node& node, const std::vector<std::string>& own,
                             const InnerLoop* inner);
  ReferenceValue Result(const Accumulators& accumulators, const std::string& slot);
  ReferenceValue EmitArgReduction(const Node& node, const std::vector<std::string>& own);
  // Statistics of one softmax row into the arrays of the node.
  void EmitSoftmaxRow(NodeId id, const std::vector<std::string>& own);

  void Line(const std::string& text);
  void Open(const std::string& text);  // "for (...) {": a scope of its own
  void Close();
  std::string Use(const std::string& array);  // a member of the context; its name in the stage
  std::string KeptIndex(NodeId id, const std::vector<std::string>& own) const;

  const std::string& text() const { return text_; }
  const std::set<std::string>& arrays() const { return arrays_; }

 private:
  using Key = std::pair<std::pair<NodeId, bool>, std::vector<std::string>>;

  ReferenceValue EmitNode(NodeId id, const std::vector<std::string>& own);
  ReferenceValue EmitFresh(NodeId id, const std::vector<std::string>& own);
  ReferenceValue EmitLiteral(const Node& node);
  ReferenceValue EmitRead(const Node& node, const std::vector<std::string>& own);
  ReferenceValue LoadElement(int tensor, const std::string& index);
  ReferenceValue EmitKept(NodeId id, const std::vector<std::string>& own);
  ReferenceValue EmitSoftmaxElement(NodeId id, const std::vector<std::string>& own);
  ReferenceValue EmitSelect(const Node& node, const std::vector<std::string>& own);
  ReferenceValue EmitComparison(const Node& node, const std::vector<std::string>& own);
  ReferenceValue EmitLogic(const Node& node, const std::vector<std::string>& own);
  ReferenceValue EmitFloat(const Node& node, const std::vector<std::string>& own);
  ReferenceValue EmitIntegerOperation(const Node& node, const std::vector<std::string>& own);
  ReferenceValue EmitCast(DType storage, const ReferenceValue& value);
  ReferenceValue EmitInlineReduction(const Node& node, const std::vector<std::string>& own);
  void EmitBoundLoops(const Node& node, std::vector<std::string>& scope, size_t count);
  void Accumulate(const Accumulators& accumulators, const ReferenceValue& term,
                  const std::string& slot);

  std::string Fresh(const std::string& letter);
  ReferenceValue Declare(DType type, const std::string& expression);
  void SetError(ReferenceValue& value, const std::string& expression);
  Rounding rounding(DType type) const { return RoundingOf(type, scene_.policy.approximate); }

  ReferenceScene& scene_;
  const Graph& graph_;
  std::string text_;
  int indent_ = 1;
  int next_ = 0;
  bool subscript_ =
      false;  // integers cannot wrap here, and plain code lets the compiler see strides
  bool in_product_ = false;                           // directly inside a sum
  std::vector<std::map<Key, ReferenceValue>> known_;  // per open scope
  std::set<std::string> arrays_;
};

// Number and C++ spellings.
std::string Hex(double value);          // a double literal, also of infinities and NaN
std::string CType(DType type);          // double, int64_t or bool
std::string RoundFunction(DType type);  // "RoundF16"

}  // namespace kiln::compiler
