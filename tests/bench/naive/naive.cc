// SPDX-License-Identifier: Apache-2.0
// bench_naive M N K: times C[M,N] = A[M,K] B[K,N] in f32 as one writes it first, three loops on one
// thread, and prints one JSON object. What a compiler makes of the textbook is the yardstick for
// what tuning is worth.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace {

void Multiply(const float* a, const float* b, float* c, int64_t m, int64_t n, int64_t k) {
  std::fill(c, c + m * n, 0.0f);
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t l = 0; l < k; ++l) {
      for (int64_t j = 0; j < n; ++j) c[i * n + j] += a[i * k + l] * b[l * n + j];
    }
  }
}

// In [-1, 1), so that no denormal slows the loop down.
void Fill(std::vector<float>* values, uint32_t seed) {
  for (float& value : *values) {
    seed = seed * 1664525 + 1013904223;
    value = static_cast<float>(seed >> 8) / 8388608.0f - 1;
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fprintf(stderr, "usage: bench_naive M N K\n");
    return 2;
  }
  const int64_t m = std::atoll(argv[1]), n = std::atoll(argv[2]), k = std::atoll(argv[3]);
  if (m < 1 || n < 1 || k < 1) {
    std::fprintf(stderr, "bench_naive: extents must be positive\n");
    return 2;
  }
  std::vector<float> a(m * k), b(k * n), c(m * n);
  Fill(&a, 1);
  Fill(&b, 2);
  // At least five samples and half a second, at most ten seconds: a slow machine is not kept
  // waiting for a small spread.
  std::vector<double> samples_ns;
  double total_ns = 0;
  double checksum = 0;
  Multiply(a.data(), b.data(), c.data(), m, n, std::min<int64_t>(k, 16));  // pages in
  while ((samples_ns.size() < 5 || total_ns < 5e8) && total_ns < 1e10) {
    const auto start = std::chrono::steady_clock::now();
    Multiply(a.data(), b.data(), c.data(), m, n, k);
    const auto end = std::chrono::steady_clock::now();
    samples_ns.push_back(std::chrono::duration<double, std::nano>(end - start).count());
    total_ns += samples_ns.back();
    checksum += c[(m / 2) * n + n / 2];
  }
  std::sort(samples_ns.begin(), samples_ns.end());
  std::printf(
      "{\"median_ns\": %.0f, \"min_ns\": %.0f, \"max_ns\": %.0f, \"samples\": %zu, "
      "\"checksum\": %.9g}\n",
      samples_ns[samples_ns.size() / 2], samples_ns.front(), samples_ns.back(), samples_ns.size(),
      checksum);
  return 0;
}
