// SPDX-License-Identifier: Apache-2.0
// What is emitted, as people read it: tile program, source and plan of some (workload, schedule)
// pairs, for three instruction sets.
// `--update-golden` rewrites tests/golden; review the difference.
#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "proto/contract/workload.h"
#include "worker/compiler/compiler.h"
#include "worker/compiler/families/library/library.h"
#include "worker/compiler/tile/print.h"

namespace kiln::compiler {
namespace {

bool update_golden = false;

// Fixed facts: the files do not depend on the machine that checks them.
DeviceFingerprint Device(const std::string& name) {
  DeviceFingerprint device;
  device.cores = device.threads = 2;
  device.l1d_bytes = 32768;
  device.l2_bytes = 1 << 20;
  device.l3_bytes = 32 << 20;
  device.l3_sharing = 2;
  device.architecture = name == "neon" ? "aarch64" : "x86-64";
  if (name == "avx2") device.features = {"avx2", "fma"}, device.vector_bits = 256;
  if (name == "avx512") device.features = {"avx2", "avx512f", "fma"}, device.vector_bits = 512;
  if (name == "neon") device.features = {"neon"};
  return device;
}

struct Golden {
  std::string file, device, program, dims, knobs;  // knobs differ from the default
  std::string family = "contraction";
};

const char kMatMul[] =
    "operator P(M,N,K) { input A[M,K], B[K,N]; output C[M,N]; C[i,j] = sum(A[i,k]*B[k,j]); }";
const char kLayer[] =
    "operator P(M,N,K) { input A[M,K]; constant B[K,N]; input bias[N], R[M,N]; output C[M,N];"
    " C[i,j] = gelu(sum(A[i,k]*B[k,j]) + bias[j]) + R[i,j]; }";
const char kDots[] =
    "operator P(M,N,K) { input A[M,K], B[N,K]; output C[M,N]; C[i,j] = sum(A[i,k]*B[j,k]); }";
const char kBatched[] =
    "operator P(B,M,N,K) { input A[B,M,K], X[B,K,N]; output C[B,M,N]; C[b,i,j] = "
    "relu(sum(A[b,i,k]*X[b,k,j])); }";

std::vector<Golden> Goldens() {
  return {
      {"square_avx2", "avx2", kMatMul, "M=1024,N=1024,K=1024", ""},
      {"square_avx512", "avx512", kMatMul, "M=1024,N=1024,K=1024", ""},
      {"square_neon", "neon", kMatMul, "M=1024,N=1024,K=1024", ""},
      {"layer", "avx2", kLayer, "M=127,N=253,K=300", "kc=128"},
      {"thin", "avx2", kMatMul, "M=8,N=4096,K=4096", ""},
      {"vector", "avx2", kDots, "M=1,N=4096,K=4096", ""},
      {"split", "avx2", kMatMul, "M=64,N=64,K=8192", "split=4"},
      {"batched", "avx2", kBatched, "B=300,M=5,N=13,K=4", ""},
      {"library", "avx2", kLayer, "M=127,N=253,K=300", "", "library"},
  };
}

std::string Render(const Golden& golden) {
  WorkloadSpec spec;
  spec.program = golden.program;
  spec.dims = *ParseDims(golden.dims);
  auto workload = CheckWorkload(spec);
  EXPECT_TRUE(workload.ok()) << workload.status();
  const DeviceFingerprint device = Device(golden.device);
  Schedule schedule{golden.family, 1, {}};
  absl::StatusOr<tile::Program> program;
  if (golden.family == "library") {
    program = BuildLibraryProgram(*workload, device, schedule);
  } else {
    auto family = MatchFamily(*workload, device, nullptr);
    auto space = (*family)->MakeSpace(*workload, device);
    schedule = (*space)->default_schedule();
    if (!golden.knobs.empty()) {
      auto knobs = ParseSchedule(absl::StrCat("contraction/1 ", golden.knobs));
      for (const auto& [name, value] : knobs->knobs) schedule.knobs[name] = value;
    }
    program = (*family)->Build(*workload, device, schedule);
  }
  EXPECT_TRUE(program.ok()) << program.status();
  auto emission = Emit(*workload, device, schedule);
  EXPECT_TRUE(emission.ok()) << emission.status();
  if (!program.ok() || !emission.ok()) return "";
  return absl::StrCat(emission->source, "\n/* tile program\n", tile::Print(*program), "\nplan\n",
                      PrintPlan(emission->plan), "*/\n");
}

TEST(Golden, EmittedSourcesAndTileProgramsAreAsReviewed) {
  for (const Golden& golden : Goldens()) {
    const std::string path = absl::StrCat("tests/golden/", golden.file, ".cc.txt");
    const std::string text = Render(golden);
    if (update_golden) {
      std::ofstream(path) << text;
      continue;
    }
    std::stringstream stored;
    stored << std::ifstream(path).rdbuf();
    EXPECT_EQ(text, stored.str())
        << path << " differs; run the test with --update-golden and review the difference";
  }
}

TEST(Golden, EmissionIsDeterministic) {
  const Golden golden = Goldens()[3];
  EXPECT_EQ(Render(golden), Render(golden));
}

}  // namespace
}  // namespace kiln::compiler

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--update-golden") == 0) kiln::compiler::update_golden = true;
  }
  return RUN_ALL_TESTS();
}
