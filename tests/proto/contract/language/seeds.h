// SPDX-License-Identifier: Apache-2.0
// Programs that mutation and fuzzing start from, and how bytes become a spec.
#pragma once

#include <cstdint>
#include <string>

#include "proto/contract/spec.h"

namespace kiln::language {

inline const char* const kSeeds[] = {
    "operator MatMul(M, N, K) {\n  input A[M,K], B[K,N];\n  output C[M,N] = sum(A[i,k] * "
    "B[k,j]);\n}\n",
    "operator F(M, N, K) {\n  input x[M,N,K], g[N];\n  output y[M,N,K];\n  t = x * sigmoid(x);\n  "
    "m = avg(t over [N,K]);\n"
    "  y = (t - m)/sqrt(avg((t - m)^2 over [N,K]) + 1e-5) * g;\n}\n",
    "operator Conv(N, K, M) {\n  input x[N,M] : f16;\n  constant w[K,3] : f16;\n  output "
    "y[N,K,(M+2-3)/2+1] : f16;\n"
    "  y[n,k,p] = sum((x[n, 2*p + r - 1] else 0) * w[k,r]);\n}\n",
    "operator Pool(N, M) {\n  input x[N,M];\n  output y[N,M/2];\n  y[n,p] = max(r in 0..3: x[n, "
    "2*p + r - 1] else -inf);\n}\n",
    "operator Scores(N, M, K) {\n  input q[N,M,K] : bf16, k[N,M,K] : bf16;\n  output p[N,M,M] : "
    "bf16;\n"
    "  s[h,i,j] = j <= i ? sum(q[h,i,d] * k[h,j,d]) : -inf;\n  p[h,i,j] = softmax(s[h,i,j] over "
    "[j]);\n}\n",
    "operator Spmv(M, N, K) {\n  input ptr[M+1] : i32, col[K] : i32, val[K], x[N];\n  output "
    "y[M];\n"
    "  y[i] = sum(e in ptr[i]..ptr[i+1]: val[e] * x[col[e]]);\n}\n",
    "operator G(N, M) {\n  input x[N], b[N] : bool, c[N] : u8;\n  output y[N], z[M] : i32;\n  t[i "
    "in 0..N+1] : f16 = x[i] else -1;\n"
    "  y[i] = select(b[i] && !any(b[k]), t[i+1], cast(c[i], f32) % 3) + max(t[i], 0.5);\n"
    "  z[j] = argmax(x[k] * j) + (N < 3 ? 1 : 2);\n}\n"};

// The program with dims, a type, strides and a policy that `choice` picks, so that these are
// reached too.
inline WorkloadSpec SpecOfBytes(const std::string& program, uint32_t choice) {
  WorkloadSpec spec;
  spec.program = program;
  const DimBinding kBindings[] = {{4, 4}, {0, 0},  {1, 1},
                                  {1, 9}, {0, 5},  {(int64_t{1} << 40) - 1, (int64_t{1} << 40) - 1},
                                  {7, 7}, {16, 16}};
  spec.dims["N"] = kBindings[choice % 8];
  if (program.find('M') != std::string::npos) spec.dims["M"] = kBindings[choice / 8 % 8];
  if (program.find('K') != std::string::npos) spec.dims["K"] = kBindings[choice / 64 % 8];
  bool has_x = program.find(" x[") != std::string::npos;
  if (has_x && choice / 512 % 8 == 1) spec.strides["x"] = {9, 1};
  if (has_x && choice / 512 % 8 == 2) spec.types["x"] = DType::kF64;
  if (choice / 4096 % 4 == 1 && program.find(" C[") != std::string::npos)
    spec.policy.accumulate["C"] = DType::kF16;
  spec.policy.tf32 = choice / 16384 % 2 == 1;
  return spec;
}

}  // namespace kiln::language
