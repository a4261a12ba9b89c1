// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/kernels/shapes.h"

#include <cstdio>
#include <cstdlib>

#include "absl/strings/str_cat.h"

namespace kiln::bench {

std::vector<Shape> Shapes() {
  std::vector<Shape> shapes;
  for (int64_t n : {128, 256, 512, 1024, 2048, 1000, 2047})
    shapes.push_back({"square", absl::StrCat(n, "x", n, "x", n)});
  for (const char* text : {"1x4096x4096", "8x4096x4096"}) shapes.push_back({"thin", text});
  for (const char* text :
       {"64x4096x4096", "4096x64x4096", "4096x4096x64", "127x8191x253", "384x384x6144",
        "3136x64x576", "196x512x4608", "32*128x128x64", "768x768x768T"}) {
    shapes.push_back({"odd", text});
  }
  for (const char* text : {"64x4096x4096C", "1024x1024x1024C"})
    shapes.push_back({"constant", text});
  return shapes;
}

Workload MakeWorkload(const std::string& text) {
  long long batch = 0, m = 0, n = 0, k = 0;
  char kind = ' ';
  if (std::sscanf(text.c_str(), "%lld*%lldx%lldx%lld", &batch, &m, &n, &k) != 4) {
    batch = 0;
    if (std::sscanf(text.c_str(), "%lldx%lldx%lld%c", &m, &n, &k, &kind) < 3) std::abort();
  }
  WorkloadSpec spec;
  if (batch > 0) {
    spec.program =
        "operator P(B,M,N,K) { input A[B,M,K], X[B,K,N]; output C[B,M,N]; C[b,i,j] = "
        "sum(A[b,i,k]*X[b,k,j]); }";
    spec.dims["B"] = {batch, batch};
  } else if (kind == 'T') {
    spec.program =
        "operator P(M,N,K) { input A[K,M], B[N,K]; output C[M,N]; C[i,j] = sum(A[k,i]*B[j,k]); }";
  } else {
    spec.program =
        absl::StrCat("operator P(M,N,K) { input A[M,K]; ", kind == 'C' ? "constant" : "input",
                     " B[K,N]; output C[M,N]; C[i,j] = sum(A[i,k]*B[k,j]); }");
  }
  spec.dims["M"] = {m, m};
  spec.dims["N"] = {n, n};
  spec.dims["K"] = {k, k};
  auto workload = CheckWorkload(spec);
  if (!workload.ok()) {
    std::fprintf(stderr, "%s\n", std::string(workload.status().message()).c_str());
    std::exit(1);
  }
  return *workload;
}

double Flops(const Workload& workload) {
  double flops = 2;
  for (const auto& [name, binding] : workload.spec.dims) flops *= static_cast<double>(binding.lo);
  return flops;
}

}  // namespace kiln::bench
