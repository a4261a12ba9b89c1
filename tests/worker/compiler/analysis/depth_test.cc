// SPDX-License-Identifier: Apache-2.0
// The longest chain that the language admits goes through everything that follows terms to their
// arguments.
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "proto/contract/workload.h"
#include "worker/compiler/analysis/interpreter.h"
#include "worker/compiler/analysis/reference.h"
#include "worker/compiler/compiler.h"
#include "worker/compiler/deep_stack.h"

namespace kiln::compiler {
namespace {

// A product plus R, over and over: each statement continues the one before.
WorkloadSpec Chain(int statements, int additions) {
  WorkloadSpec spec;
  spec.program =
      "operator P(M,N,K) { input A[M,K], B[K,N], R[M,N]; output C[M,N]; "
      "t0[i,j] = sum(A[i,k]*B[k,j]); ";
  for (int s = 1; s <= statements; ++s) {
    absl::StrAppend(&spec.program, s == statements ? "C" : absl::StrCat("t", s), "[i,j] = t", s - 1,
                    "[i,j]");
    for (int a = 0; a < additions; ++a) absl::StrAppend(&spec.program, " + R[i,j]");
    absl::StrAppend(&spec.program, "; ");
  }
  absl::StrAppend(&spec.program, "}");
  spec.dims = *ParseDims("M=2,N=3,K=2");
  return spec;
}

TEST(Depth, TheLongestChainIsFollowedToItsEnd) {
  OnDeepStack([] {
    const WorkloadSpec spec = Chain(250, 16);
    const auto workload = CheckWorkload(spec);
    ASSERT_TRUE(workload.ok()) << workload.status();
    ASSERT_GE(workload->graph.nodes.size(), 4000);

    std::vector<HostTensor> inputs;
    for (const Tensor& tensor : workload->graph.tensors) {
      if (tensor.kind != TensorKind::kInput) continue;
      inputs.push_back(MakeHostTensor(workload->graph, tensor, 0));
      for (int64_t i = 0; i < inputs.back().elements(); ++i) StoreDouble(inputs.back(), i, 1);
    }
    const auto outputs = Interpret(*workload, inputs, Arithmetic::kAsSpecified);
    ASSERT_TRUE(outputs.ok()) << outputs.status();
    EXPECT_EQ(LoadAsDouble((*outputs)[0], 0), 2 + 250 * 16);

    const auto reference = EmitReference(*workload);
    EXPECT_TRUE(reference.ok()) << reference.status();
    DeviceFingerprint device;
    device.architecture = "x86-64";
    device.cores = device.threads = 1;
    const auto family = MatchFamily(*workload, device, nullptr);
    ASSERT_TRUE(family.ok()) << family.status();
    const auto space = (*family)->MakeSpace(*workload, device);
    ASSERT_TRUE(space.ok()) << space.status();
    EXPECT_TRUE(Emit(*workload, device, (*space)->default_schedule()).ok());
  });
}

TEST(Depth, ALongerOneIsRefused) {
  OnDeepStack([] {
    const auto workload = CheckWorkload(Chain(250, 17));
    EXPECT_EQ(workload.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_NE(std::string(workload.status().message()).find("4096"), std::string::npos)
        << workload.status();
  });
}

}  // namespace
}  // namespace kiln::compiler
