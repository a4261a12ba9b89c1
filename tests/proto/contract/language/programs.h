// SPDX-License-Identifier: Apache-2.0
// Programs and specs that several tests of the language use, and short ways to check them.
#pragma once

#include <string>

#include "gtest/gtest.h"
#include "proto/contract/workload.h"

namespace kiln::language {

inline constexpr char kMatMul[] = R"(operator MatMul(M, N, K) {
  input A[M,K], B[K,N];
  output C[M,N] = sum(A[i,k] * B[k,j]);
}
)";

inline WorkloadSpec MakeSpec(const std::string& program, const std::string& dims) {
  WorkloadSpec spec;
  spec.program = program;
  auto parsed = ParseDims(dims);
  EXPECT_TRUE(parsed.ok()) << parsed.status().message();
  if (parsed.ok()) spec.dims = *parsed;
  return spec;
}

inline Workload Check(const WorkloadSpec& spec) {
  auto workload = CheckWorkload(spec);
  EXPECT_TRUE(workload.ok()) << spec.program << std::string(workload.status().message());
  return workload.ok() ? *std::move(workload) : Workload();
}

inline Workload Check(const std::string& program, const std::string& dims) {
  return Check(MakeSpec(program, dims));
}

// The message of the refusal; a failure of the test if there is none.
inline std::string Refusal(const WorkloadSpec& spec) {
  auto workload = CheckWorkload(spec);
  EXPECT_FALSE(workload.ok()) << spec.program << " is accepted";
  if (workload.ok()) return "";
  EXPECT_EQ(workload.status().code(), absl::StatusCode::kInvalidArgument);
  return std::string(workload.status().message());
}

inline std::string Refusal(const std::string& program, const std::string& dims) {
  return Refusal(MakeSpec(program, dims));
}

// A program over x[N] and y[N] with one statement.
inline std::string OneStatement(const std::string& statement) {
  return "operator F(N) { input x[N]; output y[N]; " + statement + " }";
}

}  // namespace kiln::language
