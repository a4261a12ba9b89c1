// SPDX-License-Identifier: Apache-2.0
#include "worker/verify/product_check.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <type_traits>

#include "absl/strings/str_cat.h"

namespace kiln::verify {
namespace {

constexpr int kVectors = 2;
constexpr int kSampled = 512;
constexpr double kSlack = 2;  // as in verdict.cc

// Wider than what is judged.
template <typename T>
using Wide = std::conditional_t<std::is_same_v<T, float>, double, long double>;

template <typename T>
constexpr double kUnit = std::numeric_limits<T>::epsilon() / 2;

// How the rounding errors of a sum of n terms grow, in any order (verdict.h).
double Growth(size_t n) {
  return std::min(static_cast<double>(n), 8 + 4 * std::sqrt(static_cast<double>(n)));
}

// Of small weights the sum over exact rows stays exact.
std::vector<double> Weights(size_t count, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<double> weights(count);
  for (double& weight : weights) {
    const uint64_t bits = random();
    weight = static_cast<double>(1 + bits % 64) * (bits >> 63 ? 1 : -1);
  }
  return weights;
}

}  // namespace

ProductCheck::Positions ProductCheck::PositionsOf(
    const std::vector<compiler::ContractionAxis>& axes) {
  Positions all{{0}, {0}, {0}};
  for (const compiler::ContractionAxis& axis : axes) {
    Positions next;
    for (size_t i = 0; i < all.a.size(); ++i) {
      for (int64_t x = 0; x < axis.extent; ++x) {
        next.a.push_back(all.a[i] + x * axis.a);
        next.b.push_back(all.b[i] + x * axis.b);
        next.c.push_back(all.c[i] + x * axis.c);
      }
    }
    all = std::move(next);
  }
  return all;
}

std::optional<ProductCheck> ProductCheck::Find(const Workload& workload, double slow_terms) {
  absl::StatusOr<compiler::ContractionForm> form = compiler::MatchContraction(workload);
  if (!form.ok() || !form->trivial_epilogue || form->accumulator != form->type) return {};
  if (form->type != DType::kF32 && form->type != DType::kF64) return {};
  const double terms = static_cast<double>(form->M()) * static_cast<double>(form->N()) *
                       static_cast<double>(form->K()) * static_cast<double>(form->Batch());
  if (terms <= slow_terms) return {};
  ProductCheck check;
  check.policy_ = workload.policy;
  // Operands rounded before they are multiplied, or narrower sums: the reference knows how far
  // those go.
  if (check.policy_.tf32 || check.policy_.approximate || !check.policy_.accumulate.empty())
    return {};
  int input = 0;
  for (size_t t = 0; t < workload.graph.tensors.size(); ++t) {
    const Tensor& tensor = workload.graph.tensors[t];
    if (tensor.kind == TensorKind::kOutput) check.name_ = tensor.name;
    if (tensor.kind != TensorKind::kInput && tensor.kind != TensorKind::kConstant) continue;
    if (static_cast<int>(t) == form->a) check.a_input_ = input;
    if (static_cast<int>(t) == form->b) check.b_input_ = input;
    ++input;
  }
  check.batch_ = PositionsOf(form->batch);
  check.m_ = PositionsOf(form->m);
  check.n_ = PositionsOf(form->n);
  check.k_ = PositionsOf(form->k);
  check.form_ = *std::move(form);
  return check;
}

Verdict ProductCheck::Judge(const std::vector<compiler::HostTensor>& inputs,
                            const compiler::HostTensor& got, bool exact, uint64_t seed) const {
  const auto judge = [&](auto zero) {
    using T = decltype(zero);
    const auto data = [](const compiler::HostTensor& tensor) {
      return reinterpret_cast<const T*>(tensor.bytes.data());
    };
    return JudgeAs(data(inputs[a_input_]) + form_.a_offset, data(inputs[b_input_]) + form_.b_offset,
                   data(got), exact, seed);
  };
  return form_.type == DType::kF32 ? judge(0.0f) : judge(0.0);
}

template <typename T>
Verdict ProductCheck::JudgeAs(const T* a, const T* b, const T* c, bool exact, uint64_t seed) const {
  Verdict verdict = JudgeSample(a, b, c, exact, seed);
  for (int i = 0; i < kVectors && verdict.right; ++i) {
    const std::string wrong = FindWrongRow(a, b, c, exact, seed + i, &verdict.max_error);
    if (wrong.empty()) continue;
    verdict.right = false;
    verdict.reason = wrong;
  }
  return verdict;
}

template <typename T>
std::string ProductCheck::FindWrongRow(const T* a, const T* b, const T* c, bool exact,
                                       uint64_t seed, double* max_error) const {
  using Sum = Wide<T>;
  const size_t n = n_.c.size(), k = k_.a.size();
  const std::vector<double> weights = Weights(n, seed);
  std::vector<Sum> y(k), y_size(k);
  for (size_t item = 0; item < batch_.c.size(); ++item) {
    for (size_t p = 0; p < k; ++p) {
      Sum sum = 0, size = 0;
      const T* row = b + batch_.b[item] + k_.b[p];
      for (size_t j = 0; j < n; ++j) {
        const Sum term = static_cast<Sum>(row[n_.b[j]]) * weights[j];
        sum += term, size += std::fabs(term);
      }
      y[p] = sum, y_size[p] = size;
    }
    for (size_t i = 0; i < m_.c.size(); ++i) {
      Sum want = 0, size = 0, is = 0;
      const T* row = a + batch_.a[item] + m_.a[i];
      for (size_t p = 0; p < k; ++p) {
        want += static_cast<Sum>(row[k_.a[p]]) * y[p];
        size += std::fabs(static_cast<Sum>(row[k_.a[p]])) * y_size[p];
      }
      const T* out = c + batch_.c[item] + m_.c[i];
      for (size_t j = 0; j < n; ++j) is += static_cast<Sum>(out[n_.c[j]]) * weights[j];
      // Rows with infinities, NaN or overflows in them are the sample's.
      if (!std::isfinite(size) || size > std::numeric_limits<T>::max()) continue;
      const double unit = std::numeric_limits<Sum>::epsilon() * static_cast<double>(k + n);
      const double allowed =
          exact ? 0
                : static_cast<double>(size) * (kSlack * (Growth(k) + 1) * kUnit<T> + unit) +
                      64.0 * static_cast<double>(n) * 8 * std::numeric_limits<T>::denorm_min();
      const double distance = static_cast<double>(std::fabs(is - want));
      if (!(distance <= allowed)) {
        return absl::StrCat(name_, ", row ", i,
                            batch_.c.size() > 1 ? absl::StrCat(" of item ", item) : "",
                            ": the weighted sum is ", static_cast<double>(is), ", not ",
                            static_cast<double>(want), " (within ", allowed, ")");
      }
      if (allowed > 0) *max_error = std::max(*max_error, distance / allowed);
    }
  }
  return "";
}

template <typename T>
Verdict ProductCheck::JudgeSample(const T* a, const T* b, const T* c, bool exact,
                                  uint64_t seed) const {
  using Sum = Wide<T>;
  const size_t m = m_.c.size(), n = n_.c.size(), k = k_.a.size();
  if (m * n * batch_.c.size() == 0) return {};
  std::mt19937_64 random(seed);
  compiler::HostTensor sample{
      form_.type, {kSampled}, {1}, std::vector<uint8_t>(kSampled * sizeof(T))};
  Expected expected{std::vector<double>(kSampled), std::vector<double>(kSampled)};
  // One position in four is the first or the last.
  const auto pick = [&](size_t extent) {
    const uint64_t bits = random();
    return bits % 8 == 0 ? 0 : bits % 8 == 1 ? extent - 1 : (bits >> 3) % extent;
  };
  for (int s = 0; s < kSampled; ++s) {
    const size_t item = pick(batch_.c.size()), i = pick(m), j = pick(n);
    Sum sum = 0, size = 0;
    const T* row = a + batch_.a[item] + m_.a[i];
    const T* column = b + batch_.b[item] + n_.b[j];
    for (size_t p = 0; p < k; ++p) {
      const Sum term = static_cast<Sum>(row[k_.a[p]]) * static_cast<Sum>(column[k_.b[p]]);
      sum += term, size += std::fabs(term);
    }
    expected.values[s] = static_cast<double>(sum);
    expected.errors[s] =
        !std::isfinite(sum) ? 0
        : size > std::numeric_limits<T>::max()
            ? std::numeric_limits<double>::infinity()
            : static_cast<double>(size) * (Growth(k) + 1) * kUnit<T> +
                  static_cast<double>(k) * 4 * std::numeric_limits<T>::denorm_min();
    compiler::StoreDouble(sample, s, c[batch_.c[item] + m_.c[i] + n_.c[j]]);
  }
  return verify::Judge(absl::StrCat("a sample of ", name_), sample, expected, exact, policy_);
}

}  // namespace kiln::verify
