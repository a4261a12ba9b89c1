// SPDX-License-Identifier: Apache-2.0
// Hand-written entries of the shape that Kiln emits, built as a shared object whose bytes the tests
// hand to the runtime. As emitted sources do, it declares the ABI itself and includes nothing of
// Kiln.
#include <cstdint>

extern "C" {

typedef union kiln_arg {
  void* pointer;
  int64_t integer;
  double number;
} kiln_arg;

typedef struct kiln_block {
  int64_t index[3];
  int64_t grid[3];
  void* shared;
} kiln_block;

// y[i] = a * x[i] + b for the block's chunk of n elements. Arguments: x, y, n, a, b.
void scale(const kiln_arg* args, const kiln_block* block) {
  const float* x = static_cast<const float*>(args[0].pointer);
  float* y = static_cast<float*>(args[1].pointer);
  const int64_t n = args[2].integer, chunk = (n + block->grid[0] - 1) / block->grid[0];
  const int64_t begin = block->index[0] * chunk, end = begin + chunk < n ? begin + chunk : n;
  for (int64_t i = begin; i < end; ++i) {
    y[i] = static_cast<float>(args[3].number) * x[i] + static_cast<float>(args[4].number);
  }
}

// Adds 1 to the counter of this block: counters[(z * grid_y + y) * grid_x + x].
void count(const kiln_arg* args, const kiln_block* block) {
  int64_t* counters = static_cast<int64_t*>(args[0].pointer);
  ++counters[(block->index[2] * block->grid[1] + block->index[1]) * block->grid[0] +
             block->index[0]];
}

// Fills the scratch with the block's number, works a little, and says in out[block] whether it is
// still there: two threads with one scratch would see each other's. Arguments: out, bytes.
void scratch(const kiln_arg* args, const kiln_block* block) {
  volatile int64_t* shared = static_cast<volatile int64_t*>(block->shared);
  const int64_t words = args[1].integer / 8, number = block->index[0] + 1;
  int64_t good = reinterpret_cast<uintptr_t>(block->shared) % 64 == 0;
  for (int64_t i = 0; i < words; ++i) shared[i] = number;
  for (int64_t i = 0; i < words; ++i) good &= shared[i] == number;
  static_cast<int64_t*>(args[0].pointer)[block->index[0]] = good;
}

// packed[i] = 2 * constant[i]. Arguments: constant, packed, n.
void pack(const kiln_arg* args, const kiln_block* block) {
  if (block->index[0] != 0) return;
  for (int64_t i = 0; i < args[2].integer; ++i) {
    static_cast<float*>(args[1].pointer)[i] = 2 * static_cast<const float*>(args[0].pointer)[i];
  }
}

// z[i] = x[i] + y[i]. Arguments: x, y, z, n.
void add(const kiln_arg* args, const kiln_block* block) {
  const int64_t n = args[3].integer, chunk = (n + block->grid[0] - 1) / block->grid[0];
  const int64_t begin = block->index[0] * chunk, end = begin + chunk < n ? begin + chunk : n;
  for (int64_t i = begin; i < end; ++i) {
    static_cast<float*>(args[2].pointer)[i] = static_cast<const float*>(args[0].pointer)[i] +
                                              static_cast<const float*>(args[1].pointer)[i];
  }
}

// C[m,n] = sum over k of A[m,k] B[k,n], rows by block. Arguments: A, B, C, m, n, k.
void matmul(const kiln_arg* args, const kiln_block* block) {
  const float* a = static_cast<const float*>(args[0].pointer);
  const float* b = static_cast<const float*>(args[1].pointer);
  float* c = static_cast<float*>(args[2].pointer);
  const int64_t n = args[4].integer, depth = args[5].integer;
  for (int64_t i = block->index[0]; i < args[3].integer; i += block->grid[0]) {
    for (int64_t j = 0; j < n; ++j) {
      float sum = 0;
      for (int64_t k = 0; k < depth; ++k) sum += a[i * depth + k] * b[k * n + j];
      c[i * n + j] = sum;
    }
  }
}

// The same without the last term of every sum, as a kernel with a wrong tail would compute it.
void wrong_matmul(const kiln_arg* args, const kiln_block* block) {
  const float* a = static_cast<const float*>(args[0].pointer);
  const float* b = static_cast<const float*>(args[1].pointer);
  float* c = static_cast<float*>(args[2].pointer);
  const int64_t n = args[4].integer, depth = args[5].integer;
  for (int64_t i = block->index[0]; i < args[3].integer; i += block->grid[0]) {
    for (int64_t j = 0; j < n; ++j) {
      float sum = 0;
      for (int64_t k = 0; k + 1 < depth; ++k) sum += a[i * depth + k] * b[k * n + j];
      c[i * n + j] = sum;
    }
  }
}
}
