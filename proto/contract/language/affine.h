// SPDX-License-Identifier: Apache-2.0
// Integer expressions of subscripts, bounds and extents as polynomials: terms are collected
// (x[i+1-i] is x[1]), then the extremes are found over the ranges of variables and dynamic dims. A
// variable is replaced by the end of its range that is worse, which may again hold variables and
// dims (dependent bounds, j in 0..i+1), so that affine accesses over dependent ranges are judged
// exactly; quotients, remainders and what tensors hold are bounded by intervals. Whatever overflows
// or grows too large becomes unknown, never wrong. Not thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "proto/contract/graph.h"
#include "proto/contract/language/ast.h"

namespace kiln::language {

inline constexpr int64_t kUnknown = int64_t{1} << 62;  // bounds saturate at +-kUnknown
inline constexpr Interval kAnything{-kUnknown, kUnknown};

using Atom = int;                    // a dim, a variable, a quotient, ...
using Monomial = std::vector<Atom>;  // sorted, with repetition; the empty one is 1

struct Polynomial {
  std::map<Monomial, int64_t> terms;  // no zero coefficients
  bool operator==(const Polynomial&) const = default;
  // Its value, if it holds neither variables nor dynamic dims.
  std::optional<int64_t> constant() const;
};

class Affine {
 public:
  // Ranges of the dynamic dims; all are at least 0.
  explicit Affine(std::vector<Interval> dims);

  Polynomial Number(int64_t value) const;
  Polynomial Dim(int dynamic_dim) const;
  Polynomial Var(VarId var);
  // A value of which only the range is known. Each call makes another one.
  Polynomial Opaque(Interval range, bool reads_tensor);

  Polynomial Add(const Polynomial& a, const Polynomial& b, int64_t scale = 1);
  Polynomial Mul(const Polynomial& a, const Polynomial& b);
  // Floor division and its remainder; the divisor is positive.
  Polynomial Div(const Polynomial& a, const Polynomial& b);
  Polynomial Mod(const Polynomial& a, const Polynomial& b);

  // The half-open range of a variable. Its ends use variables with smaller ids only.
  void SetRange(VarId var, const Polynomial& lo, const Polynomial& hi);
  const std::pair<Polynomial, Polynomial>& RangeOf(VarId var) const { return ranges_.at(var); }

  // Bounds of the value over all values of variables and dims; exact as said above.
  int64_t Min(const Polynomial& p);
  int64_t Max(const Polynomial& p) { return -Min(Negated(p)); }
  bool IsZero(const Polynomial& p) const { return p.terms.empty(); }
  // Whether it depends on what a tensor holds, through its terms or the ranges of its variables.
  bool ReadsTensor(const Polynomial& p) const;

  // Ranges of the dims from now on: a caller that knows more (an axis that is not empty) narrows
  // them for a while.
  const std::vector<Interval>& dims() const { return dims_; }
  void SetDims(std::vector<Interval> dims) {
    dims_ = std::move(dims);
    var_ranges_.clear();
  }

 private:
  enum class Kind { kDim, kVar, kQuotient, kRemainder, kOpaque };
  struct AtomInfo {
    Kind kind;
    int index = 0;           // kDim, kVar
    Polynomial over, under;  // kQuotient, kRemainder
    Interval range;          // kOpaque
    bool reads_tensor = false;
  };
  using Fraction = std::pair<std::map<Monomial, int64_t>, std::map<Monomial, int64_t>>;

  Polynomial OfAtom(Atom atom) const;
  Polynomial Negated(const Polynomial& p) { return Add(Number(0), p, -1); }
  Atom FractionAtom(Kind kind, const Polynomial& over, const Polynomial& under);
  Interval AtomRange(Atom atom);
  Interval ByIntervals(const Polynomial& p);
  int64_t MinOverDims(const Polynomial& p);
  std::optional<Polynomial> WithoutFraction(const Polynomial& p, Atom atom, bool keep_relation);
  std::optional<Polynomial> WithNarrowedFraction(const Polynomial& p, Atom atom);
  Atom LastVar(const Polynomial& p) const;  // the one with the largest id; -1: none
  std::optional<Polynomial> WithoutVar(const Polynomial& p, Atom atom);
  // p = factor * atom + rest; nothing if the atom occurs squared.
  std::optional<std::pair<Polynomial, Polynomial>> Split(const Polynomial& p, Atom atom);

  std::vector<Interval> dims_;
  std::vector<AtomInfo> atoms_;
  std::map<VarId, Atom> var_atoms_;
  std::map<std::pair<Kind, Fraction>, Atom> fraction_atoms_;
  std::map<VarId, std::pair<Polynomial, Polynomial>> ranges_;
  std::map<VarId, Interval> var_ranges_;  // found already, for the dims at hand
  int steps_left_ = 0;                    // of the Min in progress
  int min_depth_ = 0;
};

// Interval arithmetic that saturates at +-kUnknown.
Interval AddIntervals(Interval a, Interval b);
Interval MulIntervals(Interval a, Interval b);
Interval DivIntervals(Interval a, Interval positive_divisor);  // floor
Interval ModIntervals(Interval a, Interval positive_divisor);  // floor
Interval NegInterval(Interval a);
// The least and greatest value of an integer storage type, cut at +-kUnknown; bool is 0..1.
Interval RangeOfType(DType type);

}  // namespace kiln::language
