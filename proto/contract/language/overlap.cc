// SPDX-License-Identifier: Apache-2.0
#include "proto/contract/language/overlap.h"

#include <algorithm>
#include <numeric>

namespace kiln::language {
namespace {

using Wide = __int128;

struct Axis {
  Wide reach;  // extent - 1: differences of two indices are -reach..reach
  Wide stride;
};

Wide Gcd(Wide a, Wide b) {
  while (b != 0) {
    Wide rest = a % b;
    a = b;
    b = rest;
  }
  return a;
}

Wide FloorDiv(Wide a, Wide b) { return a / b - (a % b < 0 ? 1 : 0); }
Wide CeilDiv(Wide a, Wide b) { return -FloorDiv(-a, b); }

// x with a*x = 1 (mod m), for coprime a and m > 1.
Wide Inverse(Wide a, Wide m) {
  Wide old_r = a % m, r = m, old_x = 1, x = 0;
  while (r != 0) {
    Wide quotient = old_r / r;
    std::swap(old_r -= quotient * r, r);
    std::swap(old_x -= quotient * x, x);
  }
  return old_x < 0 ? old_x + m : old_x;
}

// Two elements share memory if differences d, not all zero, give sum(d_a * stride_a) = 0 within the
// reaches. Axes stand by falling stride; the first non-zero difference may be taken positive.
class Search {
 public:
  explicit Search(std::vector<Axis> axes)
      : axes_(std::move(axes)), span_(axes_.size() + 1, 0), gcd_(axes_.size() + 1, 0) {
    for (size_t i = axes_.size(); i-- > 0;) {
      span_[i] = span_[i + 1] + axes_[i].reach * axes_[i].stride;
      gcd_[i] = Gcd(axes_[i].stride, gcd_[i + 1]);
    }
  }

  Overlap Run() {
    for (size_t first = 0; first + 1 < axes_.size(); ++first) {
      const Axis& axis = axes_[first];
      Wide most = std::min(axis.reach, span_[first + 1] / axis.stride);
      for (Wide d = 1; d <= most; ++d) {
        if (--steps_ < 0) return Overlap::kUnknown;
        if (Reaches(first + 1, -d * axis.stride)) return Overlap::kYes;
        if (steps_ < 0) return Overlap::kUnknown;
      }
    }
    return Overlap::kNo;
  }

 private:
  // Whether the axes from `i` on can give exactly `target`.
  bool Reaches(size_t i, Wide target) {
    if (target == 0) return true;
    if (i == axes_.size() || target > span_[i] || target < -span_[i] || target % gcd_[i] != 0)
      return false;
    if (--steps_ < 0) return false;
    const Axis& axis = axes_[i];
    if (i + 1 == axes_.size()) return target % axis.stride == 0;
    if (i + 2 == axes_.size()) return TwoReach(axis, axes_[i + 1], target);
    Wide lo = std::max(-axis.reach, CeilDiv(target - span_[i + 1], axis.stride));
    Wide hi = std::min(axis.reach, FloorDiv(target + span_[i + 1], axis.stride));
    for (Wide d = lo; d <= hi; ++d) {
      if (Reaches(i + 1, target - d * axis.stride)) return true;
      if (steps_ < 0) return false;
    }
    return false;
  }

  // x*a + y*b = target within the reaches: x runs through one residue class modulo b/g.
  static bool TwoReach(const Axis& a, const Axis& b, Wide target) {
    Wide g = Gcd(a.stride, b.stride);
    if (target % g != 0) return false;
    Wide lo = std::max(-a.reach, CeilDiv(target - b.reach * b.stride, a.stride));
    Wide hi = std::min(a.reach, FloorDiv(target + b.reach * b.stride, a.stride));
    Wide modulus = b.stride / g;
    if (modulus == 1) return lo <= hi;
    Wide residue = (target / g) % modulus;
    if (residue < 0) residue += modulus;
    residue = residue * Inverse(a.stride / g, modulus) % modulus;
    Wide first = lo + ((residue - lo) % modulus + modulus) % modulus;
    return first <= hi;
  }

  std::vector<Axis> axes_;
  std::vector<Wide> span_, gcd_;  // of the axes from i on
  int64_t steps_ = 2'000'000;
};

}  // namespace

Overlap FindOverlap(const std::vector<int64_t>& extents, const std::vector<int64_t>& strides) {
  if (std::count(extents.begin(), extents.end(), 0) > 0) return Overlap::kNo;
  std::vector<Axis> axes;
  for (size_t i = 0; i < extents.size(); ++i) {
    if (extents[i] == 1) continue;
    if (strides[i] == 0) return Overlap::kYes;
    axes.push_back({extents[i] - 1, strides[i]});
  }
  std::sort(axes.begin(), axes.end(),
            [](const Axis& a, const Axis& b) { return a.stride > b.stride; });
  // Axes that continue one another are one axis: rows of 8 elements, 8 apart.
  std::vector<Axis> joined;
  for (auto axis = axes.rbegin(); axis != axes.rend(); ++axis) {
    if (!joined.empty() && axis->stride == (joined.back().reach + 1) * joined.back().stride) {
      joined.back().reach = (joined.back().reach + 1) * (axis->reach + 1) - 1;
    } else {
      joined.push_back(*axis);
    }
  }
  // Strides that exceed all that the smaller axes span cannot overlap; more elements than places
  // must.
  Wide span = 0;
  constexpr Wide kMany = static_cast<Wide>(1) << 100;
  Wide elements = 1;
  bool nested = true;
  for (const Axis& axis : joined) {
    nested = nested && axis.stride > span;
    span += axis.reach * axis.stride;
    elements = std::min(kMany, elements * (axis.reach + 1));
  }
  if (nested) return Overlap::kNo;
  if (elements > span + 1) return Overlap::kYes;
  std::reverse(joined.begin(), joined.end());
  return Search(std::move(joined)).Run();
}

}  // namespace kiln::language
