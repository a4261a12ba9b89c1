// SPDX-License-Identifier: Apache-2.0
#include "proto/contract/language/affine.h"

#include <algorithm>

namespace kiln::language {
namespace {

constexpr size_t kMaxTerms = 256;   // of a polynomial; beyond, only its range is kept
constexpr int kMaxSteps = 400;      // substitutions in one search for an extreme
constexpr int kMaxCornerDims = 10;  // dims whose corners are all tried

bool IsHuge(int64_t value) { return value >= kUnknown || value <= -kUnknown; }

int64_t FloorDiv(int64_t a, int64_t b) { return a / b - (a % b < 0 ? 1 : 0); }

}  // namespace

std::optional<int64_t> Polynomial::constant() const {
  if (terms.empty()) return 0;
  if (terms.size() == 1 && terms.begin()->first.empty()) return terms.begin()->second;
  return std::nullopt;
}

Affine::Affine(std::vector<Interval> dims) : dims_(std::move(dims)) {
  for (size_t i = 0; i < dims_.size(); ++i) {
    atoms_.push_back({Kind::kDim, static_cast<int>(i), {}, {}, {}, false});
  }
}

Polynomial Affine::Number(int64_t value) const {
  Polynomial p;
  if (value != 0) p.terms[{}] = value;
  return p;
}

Polynomial Affine::OfAtom(Atom atom) const {
  Polynomial p;
  p.terms[{atom}] = 1;
  return p;
}

Polynomial Affine::Dim(int dynamic_dim) const { return OfAtom(dynamic_dim); }

Polynomial Affine::Var(VarId var) {
  auto [it, added] = var_atoms_.try_emplace(var, static_cast<Atom>(atoms_.size()));
  if (added) atoms_.push_back({Kind::kVar, var, {}, {}, {}, false});
  return OfAtom(it->second);
}

Polynomial Affine::Opaque(Interval range, bool reads_tensor) {
  atoms_.push_back({Kind::kOpaque, 0, {}, {}, range, reads_tensor});
  return OfAtom(static_cast<Atom>(atoms_.size()) - 1);
}

Polynomial Affine::Add(const Polynomial& a, const Polynomial& b, int64_t scale) {
  Polynomial sum = a;
  for (const auto& [monomial, coefficient] : b.terms) {
    int64_t scaled = 0;
    int64_t& into = sum.terms[monomial];
    if (__builtin_mul_overflow(coefficient, scale, &scaled) ||
        __builtin_add_overflow(into, scaled, &into) || IsHuge(into)) {
      return Opaque(kAnything, ReadsTensor(a) || ReadsTensor(b));
    }
    if (into == 0) sum.terms.erase(monomial);
  }
  if (sum.terms.size() > kMaxTerms) {
    // By intervals: a search for its extremes would add polynomials as large as this one.
    Interval range = ByIntervals(sum);
    return Opaque(range, ReadsTensor(sum));
  }
  return sum;
}

Polynomial Affine::Mul(const Polynomial& a, const Polynomial& b) {
  Polynomial product;
  bool fits = a.terms.size() * b.terms.size() <= kMaxTerms;
  for (const auto& [left, x] : a.terms) {
    if (!fits) break;
    for (const auto& [right, y] : b.terms) {
      Monomial monomial;
      std::merge(left.begin(), left.end(), right.begin(), right.end(),
                 std::back_inserter(monomial));
      int64_t coefficient = 0;
      int64_t& into = product.terms[monomial];
      if (monomial.size() > 16 || __builtin_mul_overflow(x, y, &coefficient) ||
          __builtin_add_overflow(into, coefficient, &into) || IsHuge(into)) {
        fits = false;
        break;
      }
      if (into == 0) product.terms.erase(monomial);
    }
  }
  if (fits) return product;
  Interval range = MulIntervals({Min(a), Max(a)}, {Min(b), Max(b)});
  return Opaque(range, ReadsTensor(a) || ReadsTensor(b));
}

Atom Affine::FractionAtom(Kind kind, const Polynomial& over, const Polynomial& under) {
  auto [it, added] = fraction_atoms_.try_emplace({kind, {over.terms, under.terms}},
                                                 static_cast<Atom>(atoms_.size()));
  if (added) atoms_.push_back({kind, 0, over, under, {}, ReadsTensor(over) || ReadsTensor(under)});
  return it->second;
}

Polynomial Affine::Div(const Polynomial& a, const Polynomial& b) {
  std::optional<int64_t> x = a.constant(), y = b.constant();
  if (y == 1) return a;
  if (x && y && *y > 0) return Number(FloorDiv(*x, *y));
  if (!y || *y < 1) return OfAtom(FractionAtom(Kind::kQuotient, a, b));
  // floor((d*P + R) / d) is P + floor(R / d).
  Polynomial whole, rest;
  for (const auto& [monomial, coefficient] : a.terms) {
    int64_t quotient = monomial.empty() ? FloorDiv(coefficient, *y) : coefficient / *y;
    int64_t remainder = coefficient - quotient * *y;
    if (remainder != 0 && !monomial.empty()) quotient = 0, remainder = coefficient;
    if (quotient != 0) whole.terms[monomial] = quotient;
    if (remainder != 0) rest.terms[monomial] = remainder;
  }
  if (rest.constant()) return whole;  // 0 <= R < d
  return Add(whole, OfAtom(FractionAtom(Kind::kQuotient, rest, b)));
}

Polynomial Affine::Mod(const Polynomial& a, const Polynomial& b) {
  std::optional<int64_t> x = a.constant(), y = b.constant();
  if (y == 1) return Number(0);
  if (x && y && *y > 0) return Number(*x % *y + (*x % *y < 0 ? *y : 0));
  return OfAtom(FractionAtom(Kind::kRemainder, a, b));
}

void Affine::SetRange(VarId var, const Polynomial& lo, const Polynomial& hi) {
  Var(var);
  ranges_[var] = {lo, hi};
  var_ranges_.erase(var);
}

bool Affine::ReadsTensor(const Polynomial& p) const {
  for (const auto& term : p.terms) {
    for (Atom atom : term.first) {
      const AtomInfo& info = atoms_[atom];
      if (info.reads_tensor) return true;
      if (info.kind != Kind::kVar) continue;
      auto range = ranges_.find(info.index);
      if (range == ranges_.end()) continue;
      if (ReadsTensor(range->second.first) || ReadsTensor(range->second.second)) return true;
    }
  }
  return false;
}

std::optional<std::pair<Polynomial, Polynomial>> Affine::Split(const Polynomial& p, Atom atom) {
  std::pair<Polynomial, Polynomial> split;
  for (const auto& [monomial, coefficient] : p.terms) {
    auto [first, last] = std::equal_range(monomial.begin(), monomial.end(), atom);
    if (last - first > 1) return std::nullopt;
    if (first == last) {
      split.second.terms[monomial] = coefficient;
    } else {
      Monomial others(monomial.begin(), first);
      others.insert(others.end(), last, monomial.end());
      split.first.terms[others] = coefficient;
    }
  }
  return split;
}

// A lower bound of p without the quotient or remainder `atom`: floor(A/d) lies between (A-(d-1))/d
// and A/d, which keeps the relation to other terms in A where the factor is a multiple of d;
// otherwise by the atom's own range.
std::optional<Polynomial> Affine::WithoutFraction(const Polynomial& p, Atom atom,
                                                  bool keep_relation) {
  auto split = Split(p, atom);
  if (!split) return std::nullopt;
  auto& [factor, rest] = *split;
  if (keep_relation) {
    const AtomInfo info = atoms_[atom];
    if (info.kind == Kind::kRemainder) {  // 0 <= A mod d <= d-1
      if (Min(factor) >= 0) return rest;
      if (Max(factor) > 0) return std::nullopt;
      return Add(rest, Mul(factor, Add(info.under, Number(-1))));
    }
    std::optional<int64_t> k = factor.constant(), d = info.under.constant();
    if (!k || !d || *k % *d != 0) return std::nullopt;
    Polynomial scaled = Add(rest, info.over, *k / *d);
    return *k < 0 ? scaled : Add(scaled, Number(*d - 1), -(*k / *d));
  }
  Interval range = AtomRange(atom);
  int64_t end = Min(factor) >= 0 ? range.lo : Max(factor) <= 0 ? range.hi : kUnknown;
  if (std::abs(end) >= kUnknown) return std::nullopt;
  return Add(rest, factor, end);
}

// A lower bound of p in which the last variable inside a quotient is replaced by the end of its
// range that counts: a quotient does not fall when what is divided rises. Keeps the relation of its
// other end to the dims.
std::optional<Polynomial> Affine::WithNarrowedFraction(const Polynomial& p, Atom atom) {
  auto split = Split(p, atom);
  const AtomInfo info = atoms_[atom];
  if (!split || info.kind != Kind::kQuotient) return std::nullopt;
  Atom variable = LastVar(info.over);
  if (variable < 0) return std::nullopt;
  bool least = Min(split->first) >= 0;
  if (!least && Max(split->first) > 0) return std::nullopt;
  std::optional<Polynomial> over = WithoutVar(least ? info.over : Negated(info.over), variable);
  if (!over) return std::nullopt;
  return Add(split->second, Mul(split->first, Div(least ? *over : Negated(*over), info.under)));
}

// p with a variable replaced by the end of its range where p is least.
std::optional<Polynomial> Affine::WithoutVar(const Polynomial& p, Atom atom) {
  auto split = Split(p, atom);
  auto range = ranges_.find(atoms_[atom].index);
  if (!split || range == ranges_.end()) return std::nullopt;
  const auto [lo, hi] = range->second;
  if (Min(split->first) >= 0) return Add(split->second, Mul(split->first, lo));
  if (Max(split->first) > 0) return std::nullopt;
  return Add(split->second, Mul(split->first, Add(hi, Number(-1))));
}

Atom Affine::LastVar(const Polynomial& p) const {
  Atom last = -1;
  for (const auto& term : p.terms) {
    for (Atom atom : term.first) {
      if (atoms_[atom].kind != Kind::kVar) continue;
      if (last < 0 || atoms_[atom].index > atoms_[last].index) last = atom;
    }
  }
  return last;
}

int64_t Affine::Min(const Polynomial& p) {
  if (min_depth_ == 0) steps_left_ = kMaxSteps;
  constexpr int kMaxDepth = 24;
  if (--steps_left_ < 0 || min_depth_ >= kMaxDepth) return ByIntervals(p).lo;
  ++min_depth_;
  int64_t best = ByIntervals(p).lo;
  // The fraction or, without one, the variable that was made last: its range uses none made later.
  Atom fraction = -1, variable = LastVar(p);
  for (const auto& term : p.terms) {
    for (Atom atom : term.first) {
      Kind kind = atoms_[atom].kind;
      if (kind == Kind::kQuotient || kind == Kind::kRemainder) fraction = std::max(fraction, atom);
    }
  }
  if (fraction >= 0) {
    for (bool keep_relation : {true, false}) {
      std::optional<Polynomial> without = WithoutFraction(p, fraction, keep_relation);
      if (without) best = std::max(best, Min(*without));
    }
    std::optional<Polynomial> narrowed = WithNarrowedFraction(p, fraction);
    if (narrowed) best = std::max(best, Min(*narrowed));
  } else if (variable >= 0) {
    std::optional<Polynomial> without = WithoutVar(p, variable);
    if (without) best = std::max(best, Min(*without));
  } else {
    best = std::max(best, MinOverDims(p));
  }
  --min_depth_;
  return best;
}

Interval Affine::AtomRange(Atom atom) {
  const AtomInfo info = atoms_[atom];  // by value: the calls below may add atoms
  switch (info.kind) {
    case Kind::kDim:
      return dims_[info.index];
    case Kind::kOpaque:
      return info.range;
    case Kind::kVar: {
      auto range = ranges_.find(info.index);
      if (range == ranges_.end() || steps_left_ <= 0) return kAnything;
      if (auto found = var_ranges_.find(info.index); found != var_ranges_.end())
        return found->second;
      const auto [lo, hi] = range->second;
      int64_t least = Min(lo);
      int64_t most = Max(hi);
      if (most < kUnknown) --most;
      Interval ends{least, std::max(least, most)};
      if (steps_left_ > 0) var_ranges_[info.index] = ends;
      return ends;
    }
    default: {
      if (steps_left_ <= 0) return kAnything;
      Interval over{Min(info.over), Max(info.over)};
      Interval under{Min(info.under), Max(info.under)};
      return info.kind == Kind::kQuotient ? DivIntervals(over, under) : ModIntervals(over, under);
    }
  }
}

Interval Affine::ByIntervals(const Polynomial& p) {
  if (min_depth_ == 0) steps_left_ = kMaxSteps;
  Interval sum{0, 0};
  for (const auto& [monomial, coefficient] : p.terms) {
    Interval product{coefficient, coefficient};
    for (Atom atom : monomial) product = MulIntervals(product, AtomRange(atom));
    sum = AddIntervals(sum, product);
  }
  return sum;
}

// A polynomial in which no dim is squared takes its extremes at corners of the dims' box.
int64_t Affine::MinOverDims(const Polynomial& p) {
  std::vector<Atom> used;
  for (const auto& term : p.terms) {
    for (Atom atom : term.first) {
      if (atoms_[atom].kind != Kind::kDim) return -kUnknown;
      if (std::count(term.first.begin(), term.first.end(), atom) > 1) return -kUnknown;
      if (std::find(used.begin(), used.end(), atom) == used.end()) used.push_back(atom);
    }
  }
  if (used.size() > kMaxCornerDims) return -kUnknown;
  std::vector<Interval> saved = dims_;
  int64_t least = kUnknown;
  for (unsigned corner = 0; corner < (1u << used.size()); ++corner) {
    for (size_t i = 0; i < used.size(); ++i) {
      const Interval& range = saved[used[i]];
      int64_t end = corner >> i & 1 ? range.hi : range.lo;
      dims_[used[i]] = {end, end};
    }
    least = std::min(least, ByIntervals(p).lo);
  }
  dims_ = std::move(saved);
  return least;
}

}  // namespace kiln::language
