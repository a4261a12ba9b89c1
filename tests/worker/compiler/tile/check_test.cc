// SPDX-License-Identifier: Apache-2.0
// A legal program passes, and each way of breaking it is refused for what it is.
#include "worker/compiler/tile/check.h"

#include <gtest/gtest.h>

#include <functional>

#include "proto/contract/workload.h"
#include "tests/worker/compiler/tile/programs.h"
#include "worker/compiler/families/family.h"

namespace kiln::compiler::tile {
namespace {

void ExpectWrong(const std::function<void(Program&)>& damage, const std::string& reason,
                 Program program = TinyProduct(7, 13, 5)) {
  ASSERT_TRUE(Check(program).ok()) << Check(program);
  damage(program);
  const absl::Status status = Check(program);
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal) << reason;
  EXPECT_NE(std::string(status.message()).find(reason), std::string::npos)
      << status << "\nwanted: " << reason;
}

TEST(Check, AcceptsTheProductOfAnyShape) {
  for (int64_t m : {1, 2, 3, 4, 5, 8, 9}) {
    for (int64_t n : {1, 3, 4, 5, 8, 9, 17}) {
      for (int64_t k : {1, 5}) EXPECT_TRUE(Check(TinyProduct(m, n, k)).ok()) << m << " " << n;
    }
  }
}

TEST(Check, RefusesViewsBeyondTheirBuffer) {
  ExpectWrong([](Program& p) { --p.buffers[kA].elements; }, "A: elements 0..34 of 0..33");
  ExpectWrong([](Program& p) { --p.buffers[kC].elements; }, "C: elements 0..90 of 0..89");
  ExpectWrong([](Program& p) { --p.buffers[kPacked].elements; }, "packed: elements 0..39 of 0..38");
  ExpectWrong([](Program& p) { PackOf(p).source.offset = -1; }, "B: elements -1..63 of 0..64");
  ExpectWrong([](Program& p) { TileOf(p).stores[0].target.offset = 1; }, "C: elements 1..91");
  ExpectWrong([](Program& p) { PackOf(p).source.strides[0] *= -1; }, "B: elements -52..12");
  ExpectWrong(
      [](Program& p) {
        TileOf(p).joins.push_back({TileOf(p).stores[0].target, When::kNotFirst, 3, 50});
      },
      "C: elements 0..190");
}

// A tile of B as it lies in the tensor has no zeros beyond the last column: only a packed panel may
// be read in whole vectors there.
TEST(Check, RefusesTailsWithoutAGuard) {
  ExpectWrong(
      [](Program& p) {
        TileOf(p).products[0].b = View{kB, 0, {{kN0, kBlockColumns}, {kN1, kColumns}}, {13, 1}};
      },
      "B: elements 0..67 of 0..64");
  ExpectWrong([](Program& p) { OnlyStep(p).loops[kN1].step = 3; },
              "n1 does not divide the loop around it");
  ExpectWrong([](Program& p) { OnlyStep(p).loops[kM0].step = 3; },
              "m1 does not divide the loop around it");
  ExpectWrong([](Program& p) { TileOf(p).rows.size = 3; }, "of 3 does not fit steps of 2");
}

TEST(Check, RefusesBlocksThatWriteOneElement) {
  ExpectWrong([](Program& p) { TileOf(p).stores[0].target.loops[0].second = 0; },
              "C: two blocks may write one element");
  ExpectWrong([](Program& p) { TileOf(p).stores[0].target.loops[1].second = 4; },
              "C: two blocks may write one element");
  // Parts of a sum, each stored in the same place.
  ExpectWrong(
      [](Program& p) {
        p.axes.push_back({"part", 3, true});
        OnlyStep(p).loops.push_back({"part", 3, 1, 3});
        OnlyStep(p).grid.push_back(4);
      },
      "C: two blocks may write one element");
}

TEST(Check, RefusesReadsOfWhatOtherBlocksWrite) {
  ExpectWrong(
      [](Program& p) {
        View next = TileOf(p).stores[0].target;
        next.offset = 0, next.loops.pop_back();
        TileOf(p).stores[0].operands.push_back(next);
      },
      "C: is read where another block may write");
}

TEST(Check, RefusesMemoryReadBeforeOrBeyondWhatWasWritten) {
  ExpectWrong([](Program& p) { OnlyStep(p).body.erase(OnlyStep(p).body.begin()); },
              "packed: is read before it is written");
  ExpectWrong([](Program& p) { std::swap(OnlyStep(p).body[0], OnlyStep(p).body[1]); },
              "packed: is read before it is written");
  ExpectWrong([](Program& p) { PackOf(p).dims[0].size = 4; },
              "packed: elements 0..39 are read, 0..35 were written");
  // Scratch does not outlive its block, nor its step.
  ExpectWrong(
      [](Program& p) {
        Step second = OnlyStep(p);
        second.name = "second";
        second.body.erase(second.body.begin());
        p.steps.push_back(second);
      },
      "step second: packed: is read before it is written");
}

TEST(Check, RefusesMemoryThatIsMisplaced) {
  ExpectWrong([](Program& p) { p.buffers[kPacked].base = 32; }, "byte 32 is not aligned to 64");
  ExpectWrong([](Program& p) { p.buffers[kPacked].alignment = 48; }, "aligned to 48");
  ExpectWrong([](Program& p) { p.buffers[kPacked].alignment = 4096; }, "not aligned to 4096");
  ExpectWrong(
      [](Program& p) {
        p.buffers[kPacked].level = Level::kWorkspace;
        p.workspace_bytes = 159;
      },
      "packed: ends at byte 160 beyond its level's memory");
  ExpectWrong([](Program& p) { p.buffers[kPacked].level = Level::kPersistent; },
              "ends at byte 160");
  ExpectWrong(
      [](Program& p) {
        p.buffers.push_back({"second", Level::kScratch, DType::kF32, 40, 64, -1, 128});
        Copy copy = PackOf(p);
        copy.target.buffer = 4;
        std::get<For>(OnlyStep(p).body[0]).body.push_back(copy);
      },
      "packed: shares memory with second");
}

TEST(Check, RefusesProgramsThatAreNone) {
  ExpectWrong([](Program& p) { OnlyStep(p).loops[kM1].axis = 3; }, "loop m1 over axis 3");
  ExpectWrong([](Program& p) { OnlyStep(p).loops[kM1].step = 0; }, "loop m1 over axis 0 by 0");
  ExpectWrong([](Program& p) { OnlyStep(p).grid.push_back(kM0); }, "grid loop 0 is there twice");
  ExpectWrong([](Program& p) { OnlyStep(p).grid.push_back(9); }, "grid loop 9");
  ExpectWrong(
      [](Program& p) {
        PackOf(p).source.loops.push_back({kM1, 1});
      },
      "B: follows loop m1, which is not around it");
  ExpectWrong(
      [](Program& p) {
        PackOf(p).source.loops.push_back({kN1, 1});
      },
      "B: follows loop n1 twice");
  ExpectWrong([](Program& p) { PackOf(p).source.loops.push_back({-1, 1}); }, "follows loop -1");
  ExpectWrong([](Program& p) { std::get<For>(OnlyStep(p).body[0]).loop = kN0; },
              "loop 1 is open already");
  ExpectWrong([](Program& p) { PackOf(p).source.strides.pop_back(); }, "1 strides for a tile of 2");
  ExpectWrong([](Program& p) { PackOf(p).source.buffer = 7; }, "a view of buffer 7");
  ExpectWrong([](Program& p) { PackOf(p).dims[1].size = 0; }, "a tile of 0 along axis 1");
  ExpectWrong([](Program& p) { TileOf(p).rows.axis = -1; }, "along axis -1");
  ExpectWrong([](Program& p) { TileOf(p).lanes = 0; }, "0 lanes");
  ExpectWrong([](Program& p) { TileOf(p).products.push_back(TileOf(p).products[0]); },
              "2 products");
  ExpectWrong([](Program& p) { p.buffers[kB].type = DType::kF64; }, "B: is f64, not f32");
  ExpectWrong([](Program& p) { p.buffers[kB].tensor = -1; }, "B: is no tensor");
  ExpectWrong([](Program& p) { p.axes[kDepth].extent = -1; }, "axis k of -1");
  using Source = Expression::Source;
  ExpectWrong(
      [](Program& p) {
        TileOf(p).stores[0].value.nodes = {{.source = Source::kOperand, .operand = 0}};
      },
      "reads operand 0 of 0");
  ExpectWrong(
      [](Program& p) {
        TileOf(p).stores[0].value.nodes = {{.source = Source::kAccumulator},
                                           {.op = Op::kNeg, .args = {1}}};
      },
      "node 1 of a value uses node 1");
}

Program GemmCall() {
  Program program = TinyProduct(7, 13, 5);
  Step call;
  call.name = "gemm";
  call.kind = StepKind::kLibrary;
  call.call = {"openblas:sgemm", kA, kB, kC, 0, 0, 0, {0, 0, 7, 13, 5, 5, 13, 13, 1, 0, 0, 0}};
  program.steps = {call};
  return program;
}

TEST(Check, RefusesLibraryCallsBeyondTheirBuffers) {
  const auto call = [](Program& p) -> LibraryCall& { return OnlyStep(p).call; };
  ExpectWrong([&](Program& p) { call(p).a_offset = 1; }, "A: elements 1..35", GemmCall());
  ExpectWrong([&](Program& p) { call(p).numbers[6] = 14; }, "B: elements 0..68", GemmCall());
  ExpectWrong(
      [&](Program& p) { call(p).numbers[0] = 1, call(p).numbers[5] = 7, call(p).numbers[2] = 8; },
      "A: elements 0..35", GemmCall());
  ExpectWrong([&](Program& p) { call(p).numbers[8] = 2, call(p).numbers[11] = 91; },
              "C: elements 0..181", GemmCall());
  ExpectWrong([&](Program& p) { call(p).numbers.pop_back(); }, "11 numbers", GemmCall());
  ExpectWrong([&](Program& p) { call(p).b = 9; }, "buffers 0, 9 and 2", GemmCall());
}

// Whatever a space offers, for shapes with every kind of tail.
TEST(Check, AcceptsWhatTheSpacesOffer) {
  DeviceFingerprint device;
  device.architecture = "x86-64";
  device.features = {"avx2", "fma"};
  device.vector_bits = 256;
  device.cores = device.threads = 2;
  device.l1d_bytes = 32768, device.l2_bytes = 524288, device.l3_bytes = 16 << 20;
  for (const char* dims : {"M=1000,N=1000,K=1000", "M=1,N=4096,K=4096", "M=127,N=8191,K=253",
                           "M=3,N=5,K=7000", "M=2047,N=2047,K=2047", "M=4096,N=64,K=4096"}) {
    for (const char* declared : {"input A[M,K], B[K,N];", "input A[M,K]; constant B[K,N];"}) {
      WorkloadSpec spec;
      spec.program = std::string("operator P(M,N,K) { ") + declared +
                     " output C[M,N]; C[i,j] = relu(sum(A[i,k]*B[k,j])); }";
      spec.dims = *ParseDims(dims);
      const auto workload = CheckWorkload(spec);
      ASSERT_TRUE(workload.ok()) << workload.status();
      const auto family = MatchFamily(*workload, device, nullptr);
      ASSERT_TRUE(family.ok()) << family.status();
      const auto space = (*family)->MakeSpace(*workload, device);
      ASSERT_TRUE(space.ok()) << space.status();
      for (uint64_t seed = 0; seed < 100; ++seed) {
        const Schedule schedule = (*space)->Sample(seed);
        const auto program = (*family)->Build(*workload, device, schedule);
        ASSERT_TRUE(program.ok()) << program.status() << "\n" << Print(schedule);
        EXPECT_TRUE(Check(*program).ok()) << Check(*program) << "\n" << Print(schedule);
      }
    }
  }
}

}  // namespace
}  // namespace kiln::compiler::tile
