// SPDX-License-Identifier: Apache-2.0
// Vendor libraries, opened when a plan first needs one: OpenBLAS's cblas interface.
// Thread-safe; a routine's call holds a process-wide lock, since OpenBLAS's number of threads is a
// global.
#pragma once

#include <cstdint>
#include <string>

#include "client/runtime/kiln_runtime.h"

struct kiln_pool;

namespace kiln::runtime {

enum class GemmType { kF32, kF64 };

// C = op(A) * op(B), row-major, `batch` times; strides and leading dims in elements.
struct Gemm {
  const void* a = nullptr;
  const void* b = nullptr;
  void* c = nullptr;
  int64_t trans_a = 0, trans_b = 0, m = 0, n = 0, k = 0, lda = 0, ldb = 0, ldc = 0;
  int64_t batch = 1, batch_stride_a = 0, batch_stride_b = 0, batch_stride_c = 0;
};

// "openblas:sgemm" or "openblas:dgemm": opens the library. KILN_UNSUPPORTED for any other routine,
// or without the library.
kiln_code ResolveGemm(const std::string& routine, GemmType* type);

// KILN_BAD_ARGUMENT if a number is negative or beyond the library's 32-bit integers, or a leading
// dim too small.
kiln_code CheckGemm(const Gemm& gemm);

// Runs it with the pool's number of threads; the caller holds the pool's mutex.
void RunGemm(GemmType type, const Gemm& gemm, kiln_pool& pool);

}  // namespace kiln::runtime
