// SPDX-License-Identifier: Apache-2.0
// A workload seen as one contraction with a fused epilogue:
//   C[b.., m.., n..] = epilogue( sum over k.. of A[b.., m.., k..] * B[b.., k.., n..] )
// in any transposition and stride, independent of how the program spelt it. Pure.
//
// Which operand is which does not follow the text but the output's memory: `b` is the operand that
// carries the output's fastest axis (smallest stride) outside the batch, so that n is the direction
// to vectorise over, also where the output is stored transposed. A matrix-vector product therefore
// has no m axis; a dot product has neither.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "proto/contract/workload.h"

namespace kiln::compiler {

// One loop axis; strides in elements in each operand (0 where it does not run).
struct ContractionAxis {
  std::string name;  // for people
  int64_t extent = 1;
  int64_t a = 0, b = 0, c = 0;
};

// What the epilogue reads besides the accumulator: a tensor whose element is addressed by the
// output's axes.
struct EpilogueOperand {
  int tensor = -1;
  Term
      access;  // the kRead node, applied to the output's axes: how to find it again in the epilogue
  int64_t offset = 0;          // in elements
  std::vector<int64_t> batch;  // stride per batch axis
  std::vector<int64_t> m, n;   // stride per m and n axis
  bool aliases_output =
      false;  // same memory as C, element for element: read it before C is written
};

struct ContractionForm {
  int a = -1, b = -1, c = -1;          // tensors of the graph; `a` is the operand that carries m
  int64_t a_offset = 0, b_offset = 0;  // in elements
  std::vector<ContractionAxis> batch, m, n,
      k;  // axes that fuse into one strided axis are fused; extent-1 axes are gone;
          // usually m, n and k have one axis each (or none: extent 1). A group
          // with an empty axis is that one axis. Strides may be 0 or negative;
          // an n axis that no operand carries has b = 0
  DType type = DType::kF32;         // of A, B, C, the operands and all floats in the epilogue
  DType accumulator = DType::kF32;  // at least `type`
  Term epilogue;    // the output's definition: elementwise nodes over `sum`, literals and
                    // reads (each one of `operands`), in terms of the output's axes
  NodeId sum = -1;  // the kReduce node that the accumulator holds
  std::vector<EpilogueOperand>
      operands;  // every other tensor that the epilogue reads, once per distinct access
  bool a_constant = false, b_constant = false;  // may be prepacked
  bool trivial_epilogue = false;                // C = sum

  int64_t M() const;
  int64_t N() const;
  int64_t K() const;
  int64_t Batch() const;  // products of extents
};

// UNIMPLEMENTED with the reason in a sentence ("the program has two outputs", "A is read through a
// window, ...", ...).
absl::StatusOr<ContractionForm> MatchContraction(const Workload& workload);

}  // namespace kiln::compiler
