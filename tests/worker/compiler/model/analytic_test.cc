// SPDX-License-Identifier: Apache-2.0
// What any model of time has to say: more work on the same schedule takes longer, a better device
// is not slower. Absolute times are estimates and not tested.
#include "worker/compiler/model/analytic.h"

#include <gtest/gtest.h>

#include <cmath>

#include "absl/strings/str_cat.h"
#include "proto/contract/workload.h"
#include "tests/worker/compiler/tile/programs.h"
#include "worker/compiler/families/family.h"

namespace kiln::compiler::model {
namespace {

DeviceFingerprint Device(int threads = 2) {
  DeviceFingerprint device;
  device.architecture = "x86-64";
  device.features = {"avx2", "fma"};
  device.vector_bits = 256;
  device.cores = device.threads = threads;
  device.l1d_bytes = 32768;
  device.l2_bytes = 524288;
  device.l3_bytes = 16 << 20;
  device.l3_sharing = 2;
  return device;
}

struct Subject {
  Workload workload;
  const Family* family = nullptr;
  std::unique_ptr<Space> space;
};

Subject MatMul(int64_t m, int64_t n, int64_t k) {
  WorkloadSpec spec;
  spec.program =
      "operator P(M,N,K) { input A[M,K], B[K,N]; output C[M,N]; C[i,j] = sum(A[i,k]*B[k,j]); }";
  spec.dims = *ParseDims(absl::StrCat("M=", m, ",N=", n, ",K=", k));
  Subject subject;
  subject.workload = *CheckWorkload(spec);
  subject.family = *MatchFamily(subject.workload, Device(), nullptr);
  subject.space = *subject.family->MakeSpace(subject.workload, Device());
  return subject;
}

// Infinite if the schedule does not fit the shape.
double Predict(const Subject& subject, const Schedule& schedule,
               const DeviceFingerprint& device = Device()) {
  const auto program = subject.family->Build(subject.workload, device, schedule);
  return program.ok() ? PredictNanoseconds(*program, device) : INFINITY;
}

TEST(AnalyticModel, TwiceTheWorkTakesLonger) {
  const Subject base = MatMul(384, 512, 768);
  const Subject more[] = {MatMul(768, 512, 768), MatMul(384, 1024, 768), MatMul(384, 512, 1536)};
  int compared = 0;
  for (uint64_t seed = 0; seed < 60; ++seed) {
    const Schedule schedule = base.space->Sample(seed);
    const double once = Predict(base, schedule);
    ASSERT_TRUE(std::isfinite(once) && once > 0) << Print(schedule);
    for (const Subject& twice : more) {
      if (!twice.space->Check(schedule).ok()) continue;
      EXPECT_GT(Predict(twice, schedule), 1.5 * once) << Print(schedule);
      ++compared;
    }
  }
  EXPECT_GT(compared, 60);
}

TEST(AnalyticModel, TellsSchedulesApart) {
  const Subject subject = MatMul(1024, 1024, 1024);
  double best = INFINITY, worst = 0;
  for (uint64_t seed = 0; seed < 60; ++seed) {
    const double predicted = Predict(subject, subject.space->Sample(seed));
    best = std::min(best, predicted);
    worst = std::max(worst, predicted);
  }
  EXPECT_GT(worst, 2 * best);
}

TEST(AnalyticModel, ABetterDeviceIsNotSlower) {
  const tile::Program program = tile::TinyProduct(256, 256, 256);
  const double base = PredictNanoseconds(program, Device());
  for (const auto& [name, change] :
       std::initializer_list<std::pair<const char*, void (*)(DeviceFingerprint&)>>{
           {"threads", [](DeviceFingerprint& d) { d.threads = 8, d.l3_sharing = 2; }},
           {"l1", [](DeviceFingerprint& d) { d.l1d_bytes *= 4; }},
           {"l2", [](DeviceFingerprint& d) { d.l2_bytes *= 4; }},
           {"l3", [](DeviceFingerprint& d) { d.l3_bytes *= 4; }}}) {
    DeviceFingerprint better = Device();
    change(better);
    EXPECT_LE(PredictNanoseconds(program, better), base) << name;
  }
}

TEST(AnalyticModel, AStepMoreTakesLongerUnlessItRunsAtLoadTime) {
  tile::Program program = tile::TinyProduct(64, 64, 64);
  const double once = PredictNanoseconds(program, Device());
  program.steps.push_back(program.steps[0]);
  EXPECT_GT(PredictNanoseconds(program, Device()), 1.5 * once);
  program.steps[1].kind = tile::StepKind::kPrepack;
  EXPECT_EQ(PredictNanoseconds(program, Device()), once);
}

TEST(AnalyticModel, ReadingInStridesTakesLonger) {
  tile::Program program = tile::TinyProduct(512, 8, 512);
  const double rows = PredictNanoseconds(program, Device());
  // A as it lies when its columns are contiguous: every element of a row in another line.
  tile::Tile& tile = tile::TileOf(program);
  tile.products[0].a =
      tile::View{tile::kA, 0, {{tile::kM0, tile::kBlockRows}, {tile::kM1, tile::kRows}}, {1, 512}};
  EXPECT_GT(PredictNanoseconds(program, Device()), rows);
}

TEST(AnalyticModel, NothingTakesNoTime) {
  EXPECT_EQ(PredictNanoseconds(tile::Program{}, Device()), 0);
}

TEST(AnalyticModel, DoesWithoutFactsThatAreNotKnown) {
  const double predicted = PredictNanoseconds(tile::TinyProduct(9, 9, 9), DeviceFingerprint{});
  EXPECT_TRUE(std::isfinite(predicted));
  EXPECT_GT(predicted, 0);
}

}  // namespace
}  // namespace kiln::compiler::model
