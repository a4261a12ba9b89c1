// SPDX-License-Identifier: Apache-2.0
// Small odd programs that together use the whole language; all of LANGUAGE.md section 1 among them.
#pragma once

#include <string>
#include <vector>

#include "proto/contract/workload.h"

namespace kiln::compiler {

struct Program {
  const char* name;
  const char* text;
  const char* dims;
  const char* types = "";
  const char* strides = "";
  const char* policy = "";
};

inline const std::vector<Program>& Programs() {
  static const std::vector<Program> programs = {
      {"matmul", R"(operator MatMul(M, N, K) {
  input A[M,K], B[K,N];
  output C[M,N] = sum(A[i,k] * B[k,j]);
})",
       "M=5,N=7,K=13"},
      {"matmul_strided", R"(operator MatMul(M, N, K) {
  input A[M,K], B[K,N];
  output C[M,N] = sum(A[i,k] * B[k,j]);
})",
       "M=5,N=7,K=13", "", "A=1:6,B=1:16,C=9:1"},
      {"matmul_empty_k", R"(operator MatMul(M, N, K) {
  input A[M,K], B[K,N], bias[N];
  output C[M,N];
  C[i,j] = relu(sum(A[i,k] * B[k,j]) + bias[j]);
})",
       "M=3,N=4,K=0"},
      {"matmul_ones", R"(operator MatMul(M, N, K) {
  input A[M,K], B[K,N];
  output C[M,N] = sum(A[i,k] * B[k,j]);
})",
       "M=1,N=1,K=1"},
      {"activation", R"(operator CustomActivation(B, C, H, W) {
  input x[B,C,H,W], gamma[C], beta[C];
  output y[B,C,H,W];
  tmp1 = x * sigmoid(x);
  mean = avg(tmp1 over [H,W]);
  var = avg((tmp1 - mean)^2 over [H,W]);
  y = (tmp1 - mean)/sqrt(var + 1e-5) * gamma + beta;
})",
       "B=2,C=3,H=4,W=5"},
      {"conv", R"(operator Conv2d(N, C, H, W, K, R, S) {
  input x[N,C,H,W] : f16;
  constant w[K,C,R,S] : f16;
  output y[N, K, (H+2-R)/2+1, (W+2-S)/2+1] : f16;
  y[n,k,p,q] = sum((x[n, c, 2*p + r - 1, 2*q + s - 1] else 0) * w[k,c,r,s]);
})",
       "N=2,C=3,H=7,W=6,K=4,R=3,S=3"},
      {"maxpool", R"(operator MaxPool(N, C, H, W) {
  input x[N,C,H,W];
  output y[N, C, H/2, W/2];
  y[n,c,p,q] = max(r in 0..3, s in 0..3: x[n, c, 2*p + r - 1, 2*q + s - 1] else -inf);
})",
       "N=1,C=2,H=9,W=8"},
      {"causal", R"(operator CausalScores(H, Q, D) {
  input q[H,Q,D] : bf16, k[H,Q,D] : bf16;
  output p[H,Q,Q] : bf16;
  s[h,i,j] = j <= i ? sum(q[h,i,d] * k[h,j,d]) : -inf;
  p[h,i,j] = softmax(s[h,i,j] over [j]);
})",
       "H=2,Q=7,D=5"},
      {"attention", R"(operator Attention(B, H, Q, K, D) {
  input q[B,H,Q,D], k[B,H,K,D], v[B,H,K,D];
  output o[B,H,Q,D];
  s[b,h,i,j] = sum(q[b,h,i,d] * k[b,h,j,d]) * 0.125;
  m = max(s over [K]);
  p = exp(s - m);
  z = sum(p over [K]);
  o[b,h,i,d] = sum(p[b,h,i,j] * v[b,h,j,d]) / z[b,h,i];
})",
       "B=1,H=2,Q=3,K=11,D=5"},
      {"spmv", R"(operator Spmv(M, N, Z) {
  input ptr[M+1] : i32, col[Z] : i32, val[Z], x[N];
  output y[M];
  y[i] = sum(e in ptr[i]..ptr[i+1]: val[e] * x[col[e]]);
})",
       "M=6,N=9,Z=17"},
      {"prefix", R"(operator Prefix(N) {
  input x[N];
  output y[N];
  y[i] = sum(j in 0..i+1: x[j]);
})",
       "N=11"},
      {"argmax", R"(operator Argmax(M, N) {
  input x[M,N];
  output y[M] : i32, z[M] : i32;
  y[i] = argmax(x[i,j]);
  z[i] = argmin(x[i,j]);
})",
       "M=6,N=9"},
      {"functions", R"(operator Functions(N) {
  input x[N];
  output a[N], b[N], c[N], d[N], e[N], f[N], g[N], h[N];
  a[i] = exp(x[i]) + log(abs(x[i]));
  b[i] = sqrt(abs(x[i])) * rsqrt(abs(x[i]) + 1);
  c[i] = tanh(x[i]) - erf(x[i]);
  d[i] = gelu(x[i]) + silu(x[i]);
  e[i] = floor(x[i] * 3) + ceil(x[i] * 3) + round(x[i] * 3);
  f[i] = sin(x[i]) * cos(x[i]);
  g[i] = min(x[i], 0.25) + max(x[i], -0.5) - relu(x[i]);
  h[i] = x[i]^3 / (x[i]^2 + 2) + abs(x[i])^0.5 + x[i] % 0.3;
})",
       "N=37"},
      {"integers", R"(operator Integers(N) {
  input x[N] : i8, y[N] : i8, u[N] : u8;
  output a[N] : i32, b[N] : i8, c[N] : i64, d[N] : f32, s[1] : i32, e[N] : u8;
  a[i] = x[i] * y[i] + u[i] / y[i] - x[i] % y[i];
  b[i] = x[i] + y[i];
  c[i] = cast(x[i], i64) * 1000000000000 + y[i];
  d[i] = cast(x[i], f32) / 3;
  s[i] = sum(j in 0..N: x[j] * u[j]);
  e[i] = cast(cast(x[i], f32) * 3.7, u8);
})",
       "N=29"},
      {"nibbles", R"(operator Nibbles(M, N) {
  input x[M,N] : i4, y[M,N] : u4;
  output a[M,N] : i4, b[M] : i32;
  a[i,j] = x[i,j] + y[i,j];
  b[i] = sum(x[i,j] * y[i,j]);
})",
       "M=3,N=5"},
      {"bools", R"(operator Bools(M, N) {
  input x[M,N], m[M,N] : bool;
  output a[M] : bool, b[M] : bool, c[M] : i32, d[M,N];
  a[i] = any(x[i,j] > 0.9);
  b[i] = all(x[i,j] > -0.9 || m[i,j]);
  c[i] = sum(cast(x[i,j] > 0 && !m[i,j], i32));
  d[i,j] = select(m[i,j], x[i,j], -x[i,j]);
})",
       "M=6,N=7"},
      {"typed_temporary", R"(operator Typed(M, N, K) {
  input A[M,K], B[K,N];
  output C[M,N];
  t[i,j] : bf16 = sum(A[i,k] * B[k,j]);
  C[i,j] = t[i,j] * t[i,j] + t[i, (j+1) % N];
})",
       "M=4,N=6,K=9"},
      {"eights", R"(operator Eights(M, N, K) {
  input A[M,K] : e4m3, B[K,N] : e5m2;
  output C[M,N] : e4m3, D[M,N] : e5m2;
  C[i,j] = sum(A[i,k] * B[k,j]);
  D[i,j] = C[i,j] * 2;
})",
       "M=4,N=5,K=6"},
      {"double", R"(operator Double(M, N, K) {
  input A[M,K] : f64, B[K,N] : f64;
  output C[M,N] : f64, p[M] : f64;
  C[i,j] = sum(A[i,k] * B[k,j]);
  p[i] = prod(A[i,k] + 2);
})",
       "M=4,N=5,K=6"},
      {"gather", R"(operator Gather(N, M, D) {
  input table[N,D], ids[M] : i64;
  output y[M,D], z[M,D];
  y[i,d] = table[ids[i], d];
  z[i,d] = table[ids[i] + 1, d] else 7;
})",
       "N=9,M=6,D=3"},
      {"histogram", R"(operator Histogram(V, T) {
  input ids[T] : i32, w[T];
  output h[V];
  h[v] = sum(ids[t] == v ? w[t] : 0);
})",
       "V=5,T=19"},
      {"scalar", R"(operator Norm(N) {
  input x[N];
  output y[N], n[];
  n[] = sqrt(sum(x[i]^2));
  y[i] = x[i] / n;
})",
       "N=23"},
      {"layernorm", R"(operator LayerNorm(M, N) {
  input x[M,N], g[N];
  output y[M,N];
  mean = avg(x over [N]);
  var = avg((x - mean)^2 over [N]);
  y = (x - mean) * rsqrt(var + 1e-5) * g;
})",
       "M=5,N=17"},
      {"accumulate", R"(operator MatMul(M, N, K) {
  input A[M,K] : f16, B[K,N] : f16;
  output C[M,N] : f16;
  C[i,j] = sum(A[i,k] * B[k,j]);
})",
       "M=4,N=5,K=19", "", "", "accumulate=C:f16"},
  };
  return programs;
}

inline absl::StatusOr<Workload> Check(const Program& program) {
  WorkloadSpec spec;
  spec.program = program.text;
  auto dims = ParseDims(program.dims);
  if (!dims.ok()) return dims.status();
  spec.dims = *dims;
  if (*program.types != '\0') {
    auto types = ParseTypes(program.types);
    if (!types.ok()) return types.status();
    spec.types = *types;
  }
  if (*program.strides != '\0') {
    auto strides = ParseStrides(program.strides);
    if (!strides.ok()) return strides.status();
    spec.strides = *strides;
  }
  if (*program.policy != '\0') {
    auto policy = ParsePolicy(program.policy);
    if (!policy.ok()) return policy.status();
    spec.policy = *policy;
  }
  return CheckWorkload(spec);
}

}  // namespace kiln::compiler
