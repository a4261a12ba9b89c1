// SPDX-License-Identifier: Apache-2.0
// A contraction as the family sees it: three blocked axes (rows, columns, depth), everything else a
// loop around them, and which operand is broadcast (a) and which one is loaded as vectors (b).
// Pure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "proto/contract/device.h"
#include "worker/compiler/analysis/contraction.h"
#include "worker/compiler/tile/program.h"

namespace kiln::compiler::contraction {

// An axis with its strides in elements.
struct ProblemAxis {
  std::string name;  // an identifier: "m", "n", "k", "b0", ...
  int64_t extent = 1;
  int64_t a = 0, b = 0, c = 0;
  std::vector<int64_t> operands;  // per epilogue operand
};

struct Problem {
  ProblemAxis row, column, depth;
  std::vector<ProblemAxis>
      outer;  // batch, and axes of rows and columns that no single stride walks; outermost first
  std::vector<ProblemAxis> outer_depth;  // of the sum, likewise
  int a = -1, b = -1, c = -1;            // tensors
  int64_t a_offset = 0, b_offset = 0;
  bool a_constant = false, b_constant = false;
  DType type = DType::kF32;
  bool fixed_order = false;  // bits may not depend on the schedule
  bool aliased = false;      // an epilogue operand lives in the output's memory
  bool trivial = true;       // no epilogue
  std::vector<EpilogueOperand> operands;
  tile::Expression epilogue;     // empty if trivial
  int64_t spans[3] = {0, 0, 0};  // elements of a, b, c from their bases
  std::vector<int64_t> operand_spans;

  bool empty() const;  // the output has no elements
  int64_t OuterCount() const;
  double Flops() const;  // useful ones
};

// Limits of the device that the family tiles for; unknown ones are assumed small.
struct Limits {
  int lanes = 4;  // elements of a vector register
  int registers = 16;
  int64_t l1_bytes = 32768, l2_bytes = 262144, l3_bytes = 2097152;  // l3: the share of one thread
  int threads = 1;
};
Limits LimitsOf(const DeviceFingerprint& device, DType type);

// Lanes run along the output's fastest axis, or, with `swapped`, along the other one.
Problem MakeProblem(const Workload& workload, const ContractionForm& form, bool swapped);

}  // namespace kiln::compiler::contraction
