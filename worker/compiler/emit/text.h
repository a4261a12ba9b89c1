// SPDX-License-Identifier: Apache-2.0
// What the printers of C++ share: types, names, sums of products as short text.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "proto/contract/dtype.h"
#include "worker/compiler/tile/program.h"

namespace kiln::compiler::emit {

std::string RealName(DType type);               // "float", "double"
std::string VectorName(DType type, int lanes);  // "float8"; one lane: "float"

// "base + x * 3 + 5": terms with factor 0 and an offset of 0 are left out; "0" if nothing is left.
std::string Sum(const std::vector<std::pair<std::string, int64_t>>& terms, int64_t offset);

// Text of the step's loops as variables. Loops of one iteration have no variable.
class Scope {
 public:
  Scope(const tile::Program& program, const tile::Step& step) : program_(program), step_(step) {}

  bool HasVariable(int loop) const { return tile::Iterations(program_, step_.loops[loop]) > 1; }
  const std::string& Variable(int loop) const { return step_.loops[loop].name; }
  // Position on the axis: the sum of the variables of the loops around; "" at the start.
  std::string Position(int axis, const std::vector<int>& around) const;
  // How much of the axis a range of `span` starting at the position has: a number, or
  // "minimum(span, extent - (position))".
  std::string Remaining(int axis, int64_t span, const std::vector<int>& around) const;
  // A pointer to the view's first element: "A + (m0 * 1024 + k0)".
  std::string Pointer(const tile::View& view) const;

 private:
  const tile::Program& program_;
  const tile::Step& step_;
};

}  // namespace kiln::compiler::emit
