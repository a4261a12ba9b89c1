// SPDX-License-Identifier: Apache-2.0
#include "worker/verify/verdict.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace kiln::verify {
namespace {

using compiler::HostTensor;

// Covers what a first-order error analysis leaves out, and the rounding errors of the reference
// itself.
constexpr double kSlack = 2;

// Walks the elements in row-major order.
class ElementWalk {
 public:
  explicit ElementWalk(const HostTensor& tensor)
      : tensor_(tensor), index_(tensor.shape.size(), 0) {}
  int64_t offset() const { return offset_; }
  void Next() {
    for (size_t axis = index_.size(); axis-- > 0;) {
      offset_ += tensor_.strides[axis];
      if (++index_[axis] < tensor_.shape[axis]) return;
      offset_ -= tensor_.strides[axis] * tensor_.shape[axis];
      index_[axis] = 0;
    }
  }
  std::string Name() const {
    std::string name = "[";
    for (size_t axis = 0; axis < index_.size(); ++axis) {
      absl::StrAppend(&name, axis == 0 ? "" : ",", index_[axis]);
    }
    return name + "]";
  }

 private:
  const HostTensor& tensor_;
  std::vector<int64_t> index_;
  int64_t offset_ = 0;
};

std::string Number(double value) { return absl::StrFormat("%.9g", value); }

struct Check {
  bool right = false, unchecked = false;
  double allowed = 0;  // distance from want
};

Check CheckFloat(DType type, double got, double want, double error) {
  if (std::isnan(want)) return {std::isnan(got), false, 0};
  if (std::isinf(want)) return {got == compiler::RoundTo(type, want), false, 0};
  if (!std::isfinite(error)) return {true, true, 0};
  const double lo = compiler::RoundTo(type, want - kSlack * error);
  const double hi = compiler::RoundTo(type, want + kSlack * error);
  const bool inside = lo <= got && got <= hi;  // false for NaN
  return {inside, false, std::max(want - lo, hi - want)};
}

// Integer and bool outputs; an infinite error means that a decision upstream was too close to call.
Check CheckInteger(const HostTensor& got, int64_t offset, double want, double error) {
  if (error > 0) return {true, true, 0};
  if (got.type == DType::kBool) return {got.bytes[offset] == (want != 0 ? 1 : 0), false, 0};
  int64_t integer = 0;
  if (got.type == DType::kI64) {
    std::memcpy(&integer, &want, sizeof(integer));
  } else {
    integer = static_cast<int64_t>(want);
  }
  return {compiler::LoadAsInteger(got, offset) == integer, false, 0};
}

std::string WantedText(DType type, double want) {
  if (type != DType::kI64) return Number(want);
  int64_t integer = 0;
  std::memcpy(&integer, &want, sizeof(integer));
  return absl::StrCat(integer);
}

}  // namespace

Verdict Judge(absl::string_view output, const HostTensor& got, const Expected& expected, bool exact,
              const Policy& policy) {
  Verdict verdict;
  const int64_t count = got.elements();
  if (count != static_cast<int64_t>(expected.values.size())) {
    verdict.right = false;
    verdict.reason =
        absl::StrCat(output, " has ", count, " elements, not ", expected.values.size());
    return verdict;
  }
  const bool is_float = IsFloat(got.type);
  // Where denormals may flush, so may a result.
  const double flush = !policy.approximate || !is_float ? 0
                       : got.type == DType::kF64        ? 0x1p-1022
                                                        : 0x1p-126;
  ElementWalk walk(got);
  for (int64_t i = 0; i < count; ++i, walk.Next()) {
    const double want = expected.values[i];
    const double error = (exact ? 0 : expected.errors[i]) + flush;
    const double value = is_float ? compiler::LoadAsDouble(got, walk.offset()) : 0;
    const Check check = is_float ? CheckFloat(got.type, value, want, error)
                                 : CheckInteger(got, walk.offset(), want, error);
    verdict.unchecked += check.unchecked;
    if (!check.right) {
      if (verdict.wrong++ == 0) {
        verdict.reason = absl::StrCat(
            output, walk.Name(), " is ",
            is_float ? Number(value) : absl::StrCat(compiler::LoadAsInteger(got, walk.offset())),
            ", not ", WantedText(got.type, want));
        if (is_float && check.allowed > 0) {
          absl::StrAppend(&verdict.reason, " (within ", Number(check.allowed), ")");
        }
      }
    } else if (is_float && check.allowed > 0 && std::isfinite(check.allowed) &&
               std::isfinite(value)) {
      verdict.max_error = std::max(verdict.max_error, std::fabs(value - want) / check.allowed);
    }
  }
  if (verdict.wrong > 0) {
    verdict.right = false;
    absl::StrAppend(&verdict.reason, "; ", verdict.wrong, " of ", count, " are wrong");
  }
  return verdict;
}

int64_t FindWrittenPadding(const HostTensor& got, uint8_t fill) {
  int64_t dense = 1;  // packed tensors have no padding
  bool packed = true;
  for (size_t axis = got.shape.size(); axis-- > 0;) {
    if (got.shape[axis] > 1) packed &= got.strides[axis] == dense;
    dense *= got.shape[axis];
  }
  const bool nibbles = Bits(got.type) == 4;
  if (packed && (!nibbles || dense % 2 == 0)) return -1;
  HostTensor copy = got;
  ElementWalk walk(got);
  const int64_t bytes = nibbles ? 0 : Bits(got.type) / 8;
  for (int64_t i = got.elements(); i > 0; --i, walk.Next()) {
    if (nibbles) {
      compiler::StoreInteger(copy, walk.offset(), fill >> (walk.offset() % 2 * 4) & 15);
    } else {
      std::memset(copy.bytes.data() + walk.offset() * bytes, fill, static_cast<size_t>(bytes));
    }
  }
  for (size_t i = 0; i < copy.bytes.size(); ++i) {
    if (copy.bytes[i] != fill) return static_cast<int64_t>(i);
  }
  return -1;
}

}  // namespace kiln::verify
