// SPDX-License-Identifier: Apache-2.0
// What LANGUAGE.md section 5 promises of functions, in units in the last place, for what emitted
// code really calls: every function over a sweep of the type's whole range, its turning points and
// their neighbours, beside C's long double functions.
#include <gtest/gtest.h>

#include <bit>
#include <cfloat>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "tests/worker/compiler/kernels/harness.h"
#include "worker/compiler/families/family.h"

namespace kiln::compiler {
namespace {

static_assert(LDBL_MANT_DIG >= 64, "the reference has to be wider than what it judges");

using Real = long double;

// x / sqrt(2) is rounded, and erfc(y) turns that into y^2 times as much: so y is taken in two
// parts.
Real Gelu(Real x) {
  constexpr Real kRootHalf = 0.70710678118654752440084436210484903929L;
  constexpr Real kRootHalfRest = LDBL_MANT_DIG == 64 ? 1.8950325588932571e-20L : 0;
  const Real y = -x * kRootHalf;
  if (std::isinf(y)) return x * std::erfc(y) / 2;
  const Real rest = std::fma(-x, kRootHalf, -y) - x * kRootHalfRest;
  return x * (std::erfc(y) - 2 / std::sqrt(std::acos(Real{-1})) * std::exp(-y * y) * rest) / 2;
}

struct Function {
  const char* text;  // of $, and # where it takes two
  std::function<Real(Real, Real)> exact;
  double ulps;
};

const Function kFunctions[] = {
    {"exp($)", [](Real x, Real) { return std::exp(x); }, 4},
    {"log($)", [](Real x, Real) { return std::log(x); }, 4},
    {"sqrt($)", [](Real x, Real) { return std::sqrt(x); }, 0.5},
    {"rsqrt($)", [](Real x, Real) { return 1 / std::sqrt(x); }, 4},
    {"tanh($)", [](Real x, Real) { return std::tanh(x); }, 4},
    {"sigmoid($)", [](Real x, Real) { return 1 / (1 + std::exp(-x)); }, 4},
    {"erf($)", [](Real x, Real) { return std::erf(x); }, 4},
    {"gelu($)", [](Real x, Real) { return Gelu(x); }, 4},
    {"silu($)", [](Real x, Real) { return x / (1 + std::exp(-x)); }, 4},
    {"sin($)", [](Real x, Real) { return std::sin(x); }, 4},
    {"cos($)", [](Real x, Real) { return std::cos(x); }, 4},
    {"$^#", [](Real x, Real y) { return std::pow(x, y); }, 4},
    {"$ / #", [](Real x, Real y) { return x / y; }, 0.5},
    {"$ % #", [](Real x, Real y) { return std::fmod(x, y); }, 0},
    {"$^2", [](Real x, Real) { return x * x; }, 0.5},
    // A product of three factors is rounded twice, one of four squares a rounded square.
    {"$^3", [](Real x, Real) { return x * x * x; }, 2},
    {"$^4", [](Real x, Real) { return x * x * (x * x); }, 2},
    {"floor($)", [](Real x, Real) { return std::floor(x); }, 0},
    {"ceil($)", [](Real x, Real) { return std::ceil(x); }, 0},
    {"round($)", [](Real x, Real) { return std::nearbyint(x); }, 0},
};

// |got - want| in units in the last place of `want` in T. Beyond the greatest number lies infinity,
// where the next one would be.
template <typename T>
double Ulps(T got, Real want) {
  using Limits = std::numeric_limits<T>;
  if (std::isnan(want) || std::isnan(got))
    return std::isnan(want) && std::isnan(got) ? 0 : std::numeric_limits<double>::infinity();
  const Real top = std::ldexp(Real{1}, Limits::max_exponent);
  const auto within = [&](Real x) { return std::fabs(x) > top ? std::copysign(top, x) : x; };
  const Real a = within(got), b = within(want);
  int exponent = Limits::min_exponent - 1;
  if (b != 0) exponent = std::max(exponent, std::min(std::ilogb(b), Limits::max_exponent - 1));
  return static_cast<double>(std::ldexp(std::fabs(a - b), Limits::digits - 1 - exponent));
}

template <typename T>
using BitsOf = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;

// Where functions start to overflow, underflow, saturate, cancel or change their formula.
template <typename T>
std::vector<T> TurningPoints() {
  using Limits = std::numeric_limits<T>;
  std::vector<T> points = {0,
                           0.5,
                           1,
                           2,
                           4,
                           9,
                           13,
                           14,
                           38,
                           80,
                           128,
                           700,
                           Limits::denorm_min(),
                           Limits::min(),
                           Limits::epsilon(),
                           Limits::max(),
                           Limits::infinity()};
  const double top = Limits::max_exponent * M_LN2, bottom = (1 - Limits::min_exponent) * M_LN2;
  for (double x : {top, bottom, bottom + (Limits::digits - 1) * M_LN2, top / 2, bottom / 2, M_PI,
                   M_PI_2, 1e5 * M_PI, 1e22})
    points.push_back(static_cast<T>(x));
  return points;
}

template <typename T>
std::vector<T> Sweep() {
  using Bits = BitsOf<T>;
  std::vector<T> values = {std::numeric_limits<T>::quiet_NaN()};
  for (T point : TurningPoints<T>()) {
    for (int away = -40; away <= 40; ++away) {
      const Bits bits = std::bit_cast<Bits>(point) + static_cast<Bits>(away);
      const T value = std::bit_cast<T>(bits);
      if (std::isnan(value)) continue;
      values.insert(values.end(), {value, -value});
    }
  }
  // All bit patterns at even distances: as many numbers in every binade.
  constexpr int kPatterns = 60'013;
  const Bits stride = std::numeric_limits<Bits>::max() / kPatterns;
  for (Bits i = 0; i < kPatterns; ++i) {
    const T value = std::bit_cast<T>(static_cast<Bits>(i * stride));
    if (!std::isnan(value)) values.push_back(value);
  }
  // And more where functions are neither 0, 1, linear nor infinite.
  for (int i = 0; i < kPatterns; ++i) {
    const double size = std::exp2(-8 + 18.5 * i / kPatterns);
    values.insert(values.end(), {static_cast<T>(size), static_cast<T>(-size)});
  }
  // As an accumulator holds it: a sum is never -0.
  for (T& value : values) value += 0;
  return values;
}

// The accumulator holds 0 + 1 * x.
WorkloadSpec Spec(const Function& function, int64_t count, DType type) {
  WorkloadSpec spec;
  spec.program = absl::StrCat(
      "operator P(N) { input A[1,1], B[1,N], R[N]; output C[1,N]; "
      "s[i,j] = sum(A[i,k]*B[k,j]); C[i,j] = ",
      absl::StrReplaceAll(function.text, {{"$", "s[i,j]"}, {"#", "R[j]"}}), "; }");
  spec.dims = *ParseDims(absl::StrCat("N=", count));
  if (type == DType::kF64) spec.types = *ParseTypes("A=f64,B=f64,R=f64,C=f64");
  return spec;
}

template <typename T>
void ExpectWithinUlps(DType type) {
  const std::vector<T> x = Sweep<T>();
  const int64_t count = static_cast<int64_t>(x.size());
  // Beside each, another one of the sweep, or one of ordinary size.
  std::vector<T> r;
  for (int64_t i = 0; i < count; ++i)
    r.push_back(i % 2 == 0 ? x[i * 7919 % count] : static_cast<T>(i % 1601) / 100 - 8);
  const DeviceFingerprint device = TestDevice();
  KernelBatch batch("-O3");
  std::vector<Workload> workloads;
  for (const Function& function : kFunctions) {
    workloads.push_back(MakeWorkload(Spec(function, count, type)));
    auto family = MatchFamily(workloads.back(), device, nullptr);
    ASSERT_TRUE(family.ok()) << function.text << family.status();
    auto space = (*family)->MakeSpace(workloads.back(), device);
    ASSERT_TRUE(space.ok()) << space.status();
    auto kernel = batch.Add(workloads.back(), device, (*space)->default_schedule());
    ASSERT_TRUE(kernel.ok()) << kernel.status();
  }
  const absl::Status compiled = batch.Compile();
  ASSERT_TRUE(compiled.ok()) << compiled;
  for (size_t f = 0; f < workloads.size(); ++f) {
    const Function& function = kFunctions[f];
    auto inputs = MakeInputs(workloads[f], 1, true);
    StoreDouble(inputs[0], 0, 1);
    std::memcpy(inputs[1].bytes.data(), x.data(), x.size() * sizeof(T));
    if (inputs.size() > 2) std::memcpy(inputs[2].bytes.data(), r.data(), r.size() * sizeof(T));
    auto got = batch.Run(static_cast<int>(f), inputs, false);
    ASSERT_TRUE(got.ok()) << got.status();
    double worst = 0;
    int64_t at = 0;
    for (int64_t i = 0; i < count; ++i) {
      T value;
      std::memcpy(&value, got->bytes.data() + i * sizeof(T), sizeof(T));
      const double ulps = Ulps(value, function.exact(x[i], r[i]));
      if (ulps > worst) worst = ulps, at = i;
    }
    testing::Test::RecordProperty(function.text, absl::StrCat(worst));
    // The reference's own rounding is a thousandth of a unit at most.
    EXPECT_LE(worst, function.ulps + 0x1p-10)
        << function.text << " at " << static_cast<double>(x[at]) << ", "
        << static_cast<double>(r[at]);
  }
}

TEST(Accuracy, FunctionsOfFloatsAreWithinTheirUlps) { ExpectWithinUlps<float>(DType::kF32); }

TEST(Accuracy, FunctionsOfDoublesAreWithinTheirUlps) { ExpectWithinUlps<double>(DType::kF64); }

}  // namespace
}  // namespace kiln::compiler
