// SPDX-License-Identifier: Apache-2.0
#include "worker/verify/inputs.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "worker/verify/exactness.h"
#include "worker/verify/index_inputs.h"

namespace kiln::verify {
namespace {

using compiler::HostTensor;

constexpr uint8_t kPadding = 0xFF;  // NaN in every float type

// A stateless generator: the value at a place does not depend on the order of the calls.
uint64_t Mix(uint64_t x) {
  x += 0x9E3779B97F4A7C15u;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

double Unit(uint64_t random) { return static_cast<double>(random >> 11) * 0x1p-53; }

int64_t Between(uint64_t random, int64_t least, int64_t greatest) {
  const uint64_t count = static_cast<uint64_t>(greatest) - static_cast<uint64_t>(least) + 1;
  return static_cast<int64_t>(static_cast<uint64_t>(least) +
                              (count == 0 ? random : random % count));
}

// What one tensor's values are drawn from.
struct Source {
  SetKind kind = SetKind::kRandom;
  DType type = DType::kF32;
  int position = 0;   // among inputs and constants
  int magnitude = 2;  // of small integers
  int64_t row = 1;    // elements along the last axis
  int64_t rows = 1;
};

// Powers of two around a centre that alternates between tensors, so that products stay in range.
double Extreme(const Source& source, uint64_t random) {
  int centre = 50, width = 10, denormal = -149;
  if (source.type == DType::kF16) centre = 6, width = 4, denormal = -24;
  if (source.type == DType::kE5m2) centre = 6, width = 4, denormal = -16;
  if (source.type == DType::kE4m3) centre = 3, width = 3, denormal = -9;
  if (source.type == DType::kBf16) denormal = -133;
  if (source.type == DType::kF64) centre = 200, width = 40, denormal = -1074;
  const double sign = (random & 1) != 0 ? -1 : 1;
  const uint64_t pick = (random >> 1) % 16;
  if (pick == 0) return sign * 0.0;
  const uint64_t rest = Mix(random);
  if (pick == 1) return sign * std::ldexp(static_cast<double>(1 + rest % 3), denormal);
  const int shift = static_cast<int>(Between(rest, -width, width));
  return sign *
         std::ldexp(1 + Unit(Mix(rest)), (source.position % 2 == 0 ? centre : -centre) + shift);
}

// Alternating large values in every other tensor, so that sums of products nearly cancel.
double Cancelling(const Source& source, int64_t element, uint64_t random) {
  const double noise = 2 * Unit(random) - 1;
  if (source.position % 2 == 1) return 1 + noise / 8;
  const double large = source.type == DType::kE4m3 || source.type == DType::kE5m2 ? 16
                       : source.type == DType::kF16                               ? 128
                                                                                  : 1024;
  return (element % 2 == 0 ? large : -large) + noise;
}

// Rows with NaN first, in the middle and last, with infinities, and one that is -inf throughout;
// most are left alone.
double NonFinite(const Source& source, int64_t element, uint64_t random) {
  const double value = (Mix(random) & 31) == 0 ? -0.0 : 2 * Unit(random) - 1;
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double infinity = std::numeric_limits<double>::infinity();
  const int64_t row = element / source.row, column = element % source.row;
  if (source.rows < 8) {
    // Few rows: one special value, at another place in each tensor.
    if (row != 0 || column != source.row / 2) return value;
    return source.position % 3 == 0 ? nan : source.position % 3 == 1 ? infinity : -infinity;
  }
  const int64_t stripe = row * 8 / source.rows;  // the same share of rows whatever their number
  if (row != (stripe * source.rows + 7) / 8) return value;  // one row a stripe
  switch (stripe) {
    case 0:
      return column == 0 ? nan : value;
    case 1:
      return column == source.row / 2 ? nan : value;
    case 2:
      return column == source.row - 1 ? nan : value;
    case 3:
      return column == source.row / 3 ? infinity : value;
    case 4:
      return column == source.row / 3 ? -infinity : value;
    case 5:
      return source.position == 0 ? -infinity : value;
    default:
      return value;
  }
}

double FloatValue(const Source& source, int64_t element, uint64_t random) {
  switch (source.kind) {
    case SetKind::kSmallInteger:
      return static_cast<double>(Between(random, -source.magnitude, source.magnitude));
    case SetKind::kRandom:
      return 2 * Unit(random) - 1;
    case SetKind::kCancellation:
      return Cancelling(source, element, random);
    case SetKind::kNegative:
      return -1 + Unit(random) * (1 - 0x1p-8);
    case SetKind::kExtreme:
      return Extreme(source, random);
    case SetKind::kNonFinite:
      return NonFinite(source, element, random);
  }
  return 0;
}

int64_t IntegerValue(const Source& source, uint64_t random) {
  compiler::IntegerLimits limits = compiler::LimitsOf(source.type);
  if (source.kind == SetKind::kSmallInteger) {
    limits.least = std::max<int64_t>(limits.least, -source.magnitude);
    limits.greatest = std::min<int64_t>(limits.greatest, source.magnitude);
  }
  return Between(random, limits.least, limits.greatest);
}

// Values of a tensor that says where others are read.
std::vector<int64_t> IndexValues(const IndexRole& role, DType type, int64_t row, int64_t count,
                                 uint64_t seed) {
  const compiler::IntegerLimits limits = compiler::LimitsOf(type);
  const int64_t least = std::clamp(role.least, limits.least, limits.greatest);
  const int64_t greatest = std::max(least, std::min(role.greatest, limits.greatest));
  std::vector<int64_t> values;
  for (int64_t i = 0; i < count; ++i) values.push_back(Between(Mix(seed + i), least, greatest));
  if (!role.ascending) return values;
  for (int64_t start = 0; start < count; start += row) {
    const auto begin = values.begin() + start, end = begin + row;
    std::sort(begin, end);
    if (row > 2) *begin = least, *(end - 1) = greatest;  // all of what they point into
  }
  return values;
}

void FillTensor(HostTensor& tensor, const Source& source, const std::optional<IndexRole>& role,
                uint64_t seed) {
  const int64_t count = tensor.elements();
  std::vector<int64_t> indices;
  if (role && !IsFloat(tensor.type)) {
    indices = IndexValues(*role, tensor.type, source.row, count, seed);
  }
  std::vector<int64_t> index(tensor.shape.size(), 0);
  int64_t offset = 0;
  for (int64_t i = 0; i < count; ++i) {
    const uint64_t random = Mix(seed + static_cast<uint64_t>(i));
    if (!indices.empty()) {
      compiler::StoreInteger(tensor, offset, indices[i]);
    } else if (IsFloat(tensor.type)) {
      compiler::StoreDouble(tensor, offset, FloatValue(source, i, random));
    } else {
      compiler::StoreInteger(tensor, offset, IntegerValue(source, random));
    }
    for (size_t axis = index.size(); axis-- > 0;) {
      offset += tensor.strides[axis];
      if (++index[axis] < tensor.shape[axis]) break;
      offset -= tensor.strides[axis] * tensor.shape[axis];
      index[axis] = 0;
    }
  }
}

}  // namespace

absl::string_view Print(SetKind kind) {
  switch (kind) {
    case SetKind::kSmallInteger:
      return "small-integer";
    case SetKind::kRandom:
      return "random";
    case SetKind::kCancellation:
      return "cancellation";
    case SetKind::kNegative:
      return "negative";
    case SetKind::kExtreme:
      return "extreme";
    case SetKind::kNonFinite:
      return "non-finite";
  }
  return "";
}

std::vector<SetKind> SetKinds(const Workload& workload) {
  std::vector<SetKind> kinds = {SetKind::kSmallInteger, SetKind::kRandom};
  bool floats = false;
  for (const Tensor& tensor : workload.graph.tensors) floats |= IsFloat(tensor.type);
  if (!floats) return kinds;
  kinds.insert(kinds.end(), {SetKind::kCancellation, SetKind::kNegative, SetKind::kExtreme});
  if (!workload.policy.finite_only) kinds.push_back(SetKind::kNonFinite);
  return kinds;
}

std::vector<HostTensor> MakeInputs(const Workload& workload, SetKind kind, uint64_t seed) {
  const Graph& graph = workload.graph;
  const std::vector<std::optional<IndexRole>> roles = FindIndexRoles(graph);
  const int magnitude = SmallMagnitude(workload);
  std::vector<HostTensor> inputs;
  for (size_t t = 0; t < graph.tensors.size(); ++t) {
    const Tensor& tensor = graph.tensors[t];
    if (tensor.kind != TensorKind::kInput && tensor.kind != TensorKind::kConstant) continue;
    HostTensor input = compiler::MakeHostTensor(graph, tensor, kPadding);
    Source source{kind, tensor.type, static_cast<int>(t), magnitude, 1, 1};
    if (!input.shape.empty()) source.row = std::max<int64_t>(1, input.shape.back());
    source.rows = std::max<int64_t>(1, input.elements() / source.row);
    const uint64_t stream = Mix(seed ^ Mix(t * 16 + static_cast<uint64_t>(kind)));
    FillTensor(input, source, roles[t], stream);
    inputs.push_back(std::move(input));
  }
  return inputs;
}

HostTensor MakeOutput(const Workload& workload, int output, uint8_t fill) {
  for (const Tensor& tensor : workload.graph.tensors) {
    if (tensor.kind == TensorKind::kOutput && output-- == 0) {
      return compiler::MakeHostTensor(workload.graph, tensor, fill);
    }
  }
  return {};
}

}  // namespace kiln::verify
