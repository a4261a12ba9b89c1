// SPDX-License-Identifier: Apache-2.0
#include "worker/compiler/analysis/reference_prelude.h"

namespace kiln::compiler {

const char kReferencePrelude[] = R"(#include <atomic>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <new>
#include <thread>
#include <vector>

namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// ---- number formats ----

// A float of `m` mantissa bits and `e` exponent bits; `finite`: e4m3, no infinities.
inline double Decode(uint32_t code, int m, int e, int bias, bool finite) {
  const uint32_t top = (1u << e) - 1, low = (1u << m) - 1;
  const uint32_t exponent = code >> m & top, mantissa = code & low;
  double v;
  if (exponent == top && (!finite || mantissa == low)) v = finite || mantissa ? kNan : kInf;
  else if (exponent == 0) v = std::ldexp(mantissa, 1 - bias - m);
  else v = std::ldexp(mantissa + low + 1, static_cast<int>(exponent) - bias - m);
  return code >> (m + e) & 1 ? -v : v;
}

// v rounded to nearest even with `p` significant bits and least exponent `low`; above `top`: infinite, or `top` if `finite`.
inline double RoundTo(double v, int p, int low, double top, bool finite) {
  if (v != v || v == 0) return v;
  const double a = std::fabs(v);
  double r = a;
  if (a != kInf) {
    int exponent = std::ilogb(a);
    if (exponent < low) exponent = low;
    r = std::ldexp(std::nearbyint(std::ldexp(a, p - 1 - exponent)), exponent - p + 1);
  }
  if (r > top) r = finite ? top : kInf;
  return std::copysign(r, v);
}
inline double RoundF64(double v) { return v; }
inline double RoundF32(double v) { return static_cast<float>(v); }
inline double RoundF16(double v) { return RoundTo(v, 11, -14, 65504.0, false); }
inline double RoundBf16(double v) { return RoundTo(v, 8, -126, 0x1.fep127, false); }
inline double RoundE4m3(double v) { return RoundTo(v, 4, -6, 448.0, true); }
inline double RoundE5m2(double v) { return RoundTo(v, 3, -14, 57344.0, false); }

inline int64_t Truncate(double v, int64_t least, int64_t greatest) {
  if (v != v) return 0;
  v = std::trunc(v);
  if (v <= static_cast<double>(least)) return least;
  if (v >= static_cast<double>(greatest)) return greatest;
  return static_cast<int64_t>(v);
}
inline int64_t WrapSigned(int64_t v, int bits) {
  return static_cast<int64_t>(static_cast<uint64_t>(v) << (64 - bits)) >> (64 - bits);
}
inline int64_t WrapUnsigned(int64_t v, int bits) {
  return static_cast<int64_t>(static_cast<uint64_t>(v) << (64 - bits) >> (64 - bits));
}
inline double BitsToDouble(int64_t v) { double d; std::memcpy(&d, &v, 8); return d; }
inline int64_t DoubleToBits(double d) { int64_t v; std::memcpy(&v, &d, 8); return v; }

// ---- integers: wrap ----

inline int64_t IAdd(int64_t a, int64_t b) { return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b)); }
inline int64_t ISub(int64_t a, int64_t b) { return static_cast<int64_t>(static_cast<uint64_t>(a) - static_cast<uint64_t>(b)); }
inline int64_t IMul(int64_t a, int64_t b) { return static_cast<int64_t>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b)); }
inline int64_t INeg(int64_t a) { return ISub(0, a); }
inline int64_t IAbs(int64_t a) { return a < 0 ? INeg(a) : a; }
inline int64_t IDiv(int64_t a, int64_t b) { return b == 0 ? 0 : b == -1 ? INeg(a) : a / b; }
inline int64_t IMod(int64_t a, int64_t b) { return b == 0 || b == -1 ? 0 : a % b; }
inline int64_t FloorDiv(int64_t a, int64_t b) { const int64_t q = IDiv(a, b); return b != 0 && ISub(a, IMul(q, b)) != 0 && (a < 0) != (b < 0) ? q - 1 : q; }
inline int64_t FloorMod(int64_t a, int64_t b) { return b == 0 ? 0 : ISub(a, IMul(FloorDiv(a, b), b)); }
inline int64_t IMin(int64_t a, int64_t b) { return a < b ? a : b; }
inline int64_t IMax(int64_t a, int64_t b) { return a > b ? a : b; }
inline int64_t IPow(int64_t a, int64_t n) {
  if (n < 0) return a == 1 ? 1 : a == -1 ? (n % 2 ? -1 : 1) : 0;
  int64_t r = 1;
  for (; n; n >>= 1) { if (n & 1) r = IMul(r, a); a = IMul(a, a); }
  return r;
}

// ---- floats ----

inline double Max(double a, double b) {
  if (a != a || b != b) return kNan;
  if (a == b) return std::signbit(a) ? b : a;
  return a > b ? a : b;
}
inline double Min(double a, double b) {
  if (a != a || b != b) return kNan;
  if (a == b) return std::signbit(a) ? a : b;
  return a < b ? a : b;
}
inline bool Above(double a, double b) { return a > b || (a == b && std::signbit(b) && !std::signbit(a)); }
inline bool Above(int64_t a, int64_t b) { return a > b; }
inline bool IsNan(double a) { return a != a; }
inline bool IsNan(int64_t) { return false; }
inline double Exp(double x) { return std::exp(x); }
inline double Log(double x) { return std::log(x); }
inline double Sqrt(double x) { return std::sqrt(x); }
inline double Rsqrt(double x) { return 1 / std::sqrt(x); }
inline double Tanh(double x) { return std::tanh(x); }
inline double Sigmoid(double x) { return 1 / (1 + std::exp(-x)); }
inline double Erf(double x) { return std::erf(x); }
inline double Gelu(double x) { return x * (0.5 * std::erfc(-x * 0.70710678118654752440)); }
inline double Relu(double x) { return Max(x, 0.0); }
inline double Silu(double x) { return x / (1 + std::exp(-x)); }
// For programs in f64, whose last digits these need, and range that the others leave.
inline double SigmoidF64(double x) { return static_cast<double>(1 / (1 + std::exp(-static_cast<long double>(x)))); }
inline double GeluF64(double x) { return static_cast<double>(x * (0.5L * std::erfc(-x * 0.70710678118654752440084436210484903929L))); }
inline double SiluF64(double x) { return static_cast<double>(x / (1 + std::exp(-static_cast<long double>(x)))); }
inline double Floor(double x) { return std::floor(x); }
inline double Ceil(double x) { return std::ceil(x); }
inline double Round(double x) { return std::nearbyint(x); }
inline double Sin(double x) { return std::sin(x); }
inline double Cos(double x) { return std::cos(x); }
inline double Mod(double a, double b) { return std::fmod(a, b); }
inline double Pow(double a, double b) {
  if (b != std::trunc(b) || b < 0 || b > 4) return std::pow(a, b);
  double r = 1;
  for (int i = 0; i < static_cast<int>(b); ++i) r *= a;
  return r;
}

// ---- errors: how far a kernel's value may be from this one ----

// Of the value v: infinities and NaN are certain; what leaves the type's range, or cannot be bounded, is infinite.
inline double Bound(double v, double e, double top) {
  if (!std::isfinite(v)) return 0;
  return std::fabs(v) > top || e != e ? kInf : e;
}
inline double Times(double x, double e) { return e == 0 ? 0 : std::fabs(x) * e; }
inline double Wider(double a, double b) { return a > b ? a : b; }
// Largest |w - v| of the two.
inline double Spread(double v, double w1, double w2) {
  const double a = std::fabs(w1 - v), b = std::fabs(w2 - v);
  return a != a || b != b ? kInf : Wider(a, b);
}
inline double Any(double a, double b) { return a > 0 || b > 0 ? kInf : 0; }
inline double Unsure(double a, double ea, double b, double eb) {
  return ea + eb > 0 && std::fabs(a - b) <= ea + eb ? kInf : 0;
}
inline double Worst(double x, double ex, double y, double ey) {
  const double d = std::fabs(x - y);
  return Wider(ex, ey) + (d != d ? kInf : d);
}
inline double DivError(double a, double ea, double b, double eb, double v) {
  if (eb > 0 && eb >= std::fabs(b)) return kInf;
  return ((ea > 0 ? ea : 0) + Times(v, eb)) / (std::fabs(b) - eb);
}
inline double ModError(double a, double ea, double b, double eb, double v) {
  if (ea == 0 && eb == 0) return 0;
  const double e = ea + Times(std::trunc(a / b), eb);
  return std::fabs(v) <= e || std::fabs(b) - std::fabs(v) <= e + eb ? kInf : e;
}
inline double PowError(double a, double ea, double b, double eb, double v) {
  if (ea == 0 && eb == 0) return 0;
  return Wider(Spread(v, Pow(a - ea, b - eb), Pow(a + ea, b - eb)), Spread(v, Pow(a - ea, b + eb), Pow(a + ea, b + eb)));
}
inline double TruncError(double x, double e) {
  return e > 0 && std::trunc(x - e) != std::trunc(x + e) ? kInf : 0;
}
// How the rounding errors of a sum of n terms grow, in any order.
inline double Growth(double n) { const double g = 8 + 4 * std::sqrt(n); return n < g ? n : g; }

// ---- threads ----

template <typename F>
void ParallelFor(int64_t tasks, int threads, const F& run) {
  std::atomic<int64_t> next{0};
  auto work = [&] { for (int64_t t; (t = next.fetch_add(1)) < tasks;) run(t); };
  std::vector<std::thread> others;
  for (int i = 1; i < threads && i < tasks; ++i) others.emplace_back(work);
  work();
  for (std::thread& thread : others) thread.join();
}

)";

}  // namespace kiln::compiler
