// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "client/kiln_client.h"
#include "proto/contract/error.h"
#include "tests/client/fake_server.h"

namespace kiln::client {
namespace {

absl::StatusOr<std::string> KernelSource(const std::string& digest) {
  if (digest != KernelArtifactDigest()) return absl::NotFoundError(digest);
  return KernelArtifact();
}

class LoadedKernelTest : public testing::Test {
 protected:
  void SetUp() override {
    auto kernel = LoadedKernel::Load(product_.spec, product_.record, KernelSource);
    ASSERT_TRUE(kernel.ok()) << kernel.status();
    kernel_ = *std::move(kernel);
    auto pool = ThreadPool::Make(2);
    ASSERT_TRUE(pool.ok()) << pool.status();
    pool_ = *std::move(pool);
  }

  std::vector<TensorView> Views() {
    return {{a_, DType::kF32, {4, 6}, {}},
            {b_, DType::kF32, {6, 5}, {}},
            {c_, DType::kF32, {4, 5}, {5, 1}}};
  }
  void ExpectRefused(const std::vector<TensorView>& views, const std::string& words) {
    const auto binding = kernel_->Bind(views);
    EXPECT_EQ(binding.status().code(), absl::StatusCode::kInvalidArgument) << binding.status();
    EXPECT_NE(binding.status().message().find(words), std::string::npos) << binding.status();
  }

  const FakeProduct product_ = MakeProduct(4, 5, 6);
  std::unique_ptr<LoadedKernel> kernel_;
  std::unique_ptr<ThreadPool> pool_;
  alignas(64) float a_[24] = {}, b_[30] = {}, c_[24] = {};
};

TEST_F(LoadedKernelTest, ComputesOnTheCallersTensors) {
  for (int i = 0; i < 24; ++i) a_[i] = static_cast<float>(i % 5);
  for (int i = 0; i < 30; ++i) b_[i] = static_cast<float>(i % 7);
  const auto binding = kernel_->Bind(Views());
  ASSERT_TRUE(binding.ok()) << binding.status();
  ASSERT_TRUE(kernel_->Launch(**binding, *pool_).ok());
  for (int i = 0; i < 4; ++i) {
    for (int j = 0; j < 5; ++j) {
      float sum = 0;
      for (int k = 0; k < 6; ++k) sum += a_[i * 6 + k] * b_[k * 5 + j];
      EXPECT_EQ(c_[i * 5 + j], sum);
    }
  }
}

TEST_F(LoadedKernelTest, RefusesTensorsThatAreNotTheWorkloads) {
  auto views = Views();
  views[0].type = DType::kF64;
  ExpectRefused(views, "tensor A: type: f64");
  views = Views();
  views[1].shape = {5, 6};
  ExpectRefused(views, "tensor B: shape: [5,6]");
  views = Views();
  views[2].strides = {6, 1};
  ExpectRefused(views, "tensor C: strides: [6,1]");
  views = Views();
  views[0].data = a_ + 1;
  ExpectRefused(views, "multiples of 16 bytes");
  views = Views();
  views[0].data = nullptr;
  ExpectRefused(views, "tensor A: pointer: null");
  views = Views();
  views[2].data = a_;
  ExpectRefused(views, "overlapping A");
  views = Views();
  views.pop_back();
  ExpectRefused(views, "tensors: 2");
}

TEST_F(LoadedKernelTest, RefusesARecordOfAnotherWorkload) {
  const auto other = LoadedKernel::Load(MakeProduct(8, 5, 6).spec, product_.record, KernelSource);
  EXPECT_EQ(other.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(GetErrorInfo(other.status()).reason, "WRONG_WORKLOAD");
}

TEST_F(LoadedKernelTest, RefusesAPlanForAnotherMachineAndDamagedCode) {
  Record record = product_.record;
  record.plan.features = {"quantum"};
  EXPECT_EQ(LoadedKernel::Load(product_.spec, record, KernelSource).status().code(),
            absl::StatusCode::kFailedPrecondition);
  const auto damaged = LoadedKernel::Load(
      product_.spec, product_.record,
      [](const std::string&) -> absl::StatusOr<std::string> { return KernelArtifact() + "x"; });
  EXPECT_EQ(damaged.status().code(), absl::StatusCode::kDataLoss);
}

}  // namespace
}  // namespace kiln::client
