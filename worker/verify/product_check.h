// SPDX-License-Identifier: Apache-2.0
// Right or wrong for products whose reference would take too long. Freivalds' test: with a vector r
// of random weights, C r is compared with A (B r), which costs as much as reading the matrices. No
// weight is zero, so that one wrong element always shows where sums are exact (the small-integer
// set), and elsewhere if it is wrong by more than the whole row may be. Elements in corners, along
// the last rows and columns and at random are computed in full besides, on every set. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "worker/compiler/analysis/contraction.h"
#include "worker/verify/verdict.h"

namespace kiln::verify {

// Multiply-adds beyond which a reference set is not asked for: some ten seconds of two cores.
inline constexpr double kSlowTerms = 2e10;

class ProductCheck {
 public:
  // Nothing for what is not slow, or no contraction of f32 or f64 without an epilogue.
  static std::optional<ProductCheck> Find(const Workload& workload, double slow_terms);

  // `inputs`: inputs and constants in order. `exact`: sums are, in any order.
  Verdict Judge(const std::vector<compiler::HostTensor>& inputs, const compiler::HostTensor& got,
                bool exact, uint64_t seed) const;

 private:
  // Offsets in elements of every position of a group of axes, in each operand.
  struct Positions {
    std::vector<int64_t> a, b, c;
  };
  static Positions PositionsOf(const std::vector<compiler::ContractionAxis>& axes);
  template <typename T>
  Verdict JudgeAs(const T* a, const T* b, const T* c, bool exact, uint64_t seed) const;
  template <typename T>
  std::string FindWrongRow(const T* a, const T* b, const T* c, bool exact, uint64_t seed,
                           double* max_error) const;
  template <typename T>
  Verdict JudgeSample(const T* a, const T* b, const T* c, bool exact, uint64_t seed) const;

  compiler::ContractionForm form_;
  int a_input_ = -1, b_input_ = -1;  // among inputs and constants
  std::string name_;                 // of the output
  Policy policy_;
  Positions batch_, m_, n_, k_;
};

}  // namespace kiln::verify
