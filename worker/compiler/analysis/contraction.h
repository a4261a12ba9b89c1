// SPDX-License-Identifier: Apache-2.0
// A workload seen as one contraction with a fused epilogue:
//   C[b.., m.., n..] = epilogue( sum over k.. of A[b.., m.., k..] * B[b.., k.., n..] )
// in any transposition and stride, independent of how the program spelt it. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "proto/contract/workload.h"

namespace kiln::compiler {

// One loop axis; strides in elements in each operand (0 where it does not run).
struct ContractionAxis {
  std::string name;           // for people
  int64_t extent = 1;
  int64_t a = 0, b = 0, c = 0;
};

// What the epilogue reads besides the accumulator: a tensor whose element is addressed by the output's axes.
struct EpilogueOperand {
  int tensor = -1;
  int64_t offset = 0;         // in elements
  std::vector<int64_t> batch; // stride per batch axis
  std::vector<int64_t> m, n;  // stride per m and n axis
};

struct ContractionForm {
  int a = -1, b = -1, c = -1;                      // tensors of the graph; `a` is the operand that carries m
  int64_t a_offset = 0, b_offset = 0;              // in elements
  std::vector<ContractionAxis> batch, m, n, k;     // axes that fuse into one strided axis are fused; extent-1 axes are gone;
                                                   // usually m, n and k have one axis each (or none: extent 1)
  DType type = DType::kF32;                        // of A and B
  DType accumulator = DType::kF32;
  Term epilogue;                                   // the output's definition; see below
  NodeId sum = -1;                                 // the kReduce node that the accumulator holds
  std::vector<EpilogueOperand> operands;           // every other tensor that the epilogue reads, once per distinct access
  bool a_constant = false, b_constant = false;     // may be prepacked
  bool trivial_epilogue = false;                   // C = sum

  int64_t M() const; int64_t N() const; int64_t K() const; int64_t Batch() const;   // products of extents
};

// UNIMPLEMENTED with the reason in a sentence ("two outputs", "A is read through a window: A[i+r]", "f16 operands", ...).
absl::StatusOr<ContractionForm> MatchContraction(const Workload& workload);

}  // namespace kiln::compiler
