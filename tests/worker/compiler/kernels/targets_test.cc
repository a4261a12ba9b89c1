// SPDX-License-Identifier: Apache-2.0
// What is emitted for instruction sets that this machine may lack goes through real compilers for
// them, to assembly, with warnings as errors; and the assembly is made of the instructions meant.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "tests/worker/compiler/kernels/harness.h"
#include "worker/compiler/compiler.h"
#include "worker/compiler/families/family.h"

namespace kiln::compiler {
namespace {

DeviceFingerprint Device(const std::string& architecture, std::vector<std::string> features,
                         int vector_bits) {
  DeviceFingerprint device;
  device.architecture = architecture;
  device.features = std::move(features);
  device.vector_bits = vector_bits;
  device.cores = device.threads = 2;
  device.l1d_bytes = 32768;
  device.l2_bytes = 1 << 20;
  device.l3_bytes = 32 << 20;
  device.l3_sharing = 2;
  return device;
}

struct Shape {
  const char* declarations;
  const char* value;
  const char* dims;
  bool is_double = false;
};

// Whole tiles and tails of rows and columns, sums in several passes, packed constants, dots, every
// function.
const Shape kShapes[] = {
    {"input A[M,K], B[K,N]; output C[M,N]", "sum(A[i,k]*B[k,j])", "M=256,N=512,K=300"},
    {"input A[M,K], B[K,N]; output C[M,N]", "sum(A[i,k]*B[k,j])", "M=47,N=61,K=700", true},
    {"input A[M,K]; constant B[K,N]; input v[N]; output C[M,N]",
     "gelu(sum(A[i,k]*B[k,j]) + v[j]) + silu(v[j])", "M=33,N=100,K=65"},
    {"input A[M,K], B[N,K]; output C[M,N]", "sum(A[i,k]*B[j,k])", "M=1,N=130,K=999"},
    {"input A[M,K], B[K,N], v[M]; output C[M,N]",
     "select(v[i] > 0 && !(v[i] >= 3), tanh(max(sum(A[i,k]*B[k,j]), -2)), "
     "min(erf(v[i]), exp(v[i])) + log(v[i]) * rsqrt(v[i]) - sin(v[i]) / cos(v[i]))",
     "M=19,N=23,K=29", true},
};

// The default schedule and another one, each with the flags that it would be compiled with.
std::vector<Emission> Emissions(const DeviceFingerprint& device) {
  std::vector<Emission> emissions;
  for (const Shape& shape : kShapes) {
    WorkloadSpec spec;
    spec.program =
        absl::StrCat("operator P(M,N,K) { ", shape.declarations, "; C[i,j] = ", shape.value, "; }");
    spec.dims = *ParseDims(shape.dims);
    if (shape.is_double) {
      spec.types = {{"A", DType::kF64}, {"B", DType::kF64}, {"C", DType::kF64}};
      if (spec.program.find("v[") != std::string::npos) spec.types["v"] = DType::kF64;
    }
    const Workload workload = MakeWorkload(spec);
    const auto family = MatchFamily(workload, device, nullptr);
    EXPECT_TRUE(family.ok()) << family.status();
    if (!family.ok()) continue;
    const auto space = (*family)->MakeSpace(workload, device);
    EXPECT_TRUE(space.ok()) << space.status();
    for (const Schedule& schedule : {(*space)->default_schedule(), (*space)->Sample(1)}) {
      auto emission = Emit(workload, device, schedule);
      EXPECT_TRUE(emission.ok()) << emission.status();
      if (emission.ok()) emissions.push_back(*std::move(emission));
    }
  }
  return emissions;
}

std::string Read(const std::string& path) {
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

class Targets : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = (std::filesystem::temp_directory_path() / "kiln-targets-XXXXXX").string();
    ASSERT_NE(mkdtemp(folder_.data()), nullptr);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  // Why `compiler` cannot make assembly for its target with these flags; empty if it can.
  std::string Refusal(const std::string& compiler, const std::vector<std::string>& flags) {
    std::string assembly;
    return Compile(compiler, flags, "int answer() { return 42; }\n", &assembly);
  }

  // The compiler's complaints; empty if there are none.
  std::string Compile(const std::string& compiler, const std::vector<std::string>& flags,
                      const std::string& source, std::string* assembly) {
    const std::string base = folder_ + "/source";
    std::ofstream(base + ".cc") << source;
    const std::string command =
        absl::StrCat(compiler, " ", absl::StrJoin(flags, " "), " -Wall -Wextra -Werror -fPIC -S ",
                     base, ".cc -o ", base, ".s > ", base, ".log 2>&1");
    const bool good = std::system(command.c_str()) == 0;
    *assembly = Read(base + ".s");
    return good ? "" : absl::StrCat(command, "\n", Read(base + ".log"));
  }

  // With the first compiler that can; skips, and says why, if none can. `instruction`: what every
  // kernel's product is made of.
  void ExpectCompiles(const std::vector<std::string>& compilers, const DeviceFingerprint& device,
                      const std::string& instruction) {
    const std::vector<Emission> emissions = Emissions(device);
    ASSERT_FALSE(emissions.empty());
    std::string refusals;
    for (const std::string& compiler : compilers) {
      if (const std::string why = Refusal(compiler, emissions[0].flags); !why.empty()) {
        absl::StrAppend(&refusals, why);
        continue;
      }
      for (const Emission& emission : emissions) {
        std::string assembly;
        const std::string complaints =
            Compile(compiler, emission.flags, emission.source, &assembly);
        ASSERT_EQ(complaints, "") << emission.source;
        EXPECT_NE(assembly.find(instruction), std::string::npos) << compiler << emission.source;
      }
      return;
    }
    GTEST_SKIP() << "no compiler for " << device.architecture << ":\n" << refusals;
  }

  std::string folder_;
};

TEST_F(Targets, Avx512CompilesWithGcc) {
  const auto device = Device("x86-64", {"avx2", "avx512f", "fma"}, 512);
  ExpectCompiles({"g++", "x86_64-linux-gnu-g++"}, device, "%zmm");
}

TEST_F(Targets, Avx512CompilesWithClang) {
  const auto device = Device("x86-64", {"avx2", "avx512f", "fma"}, 512);
  ExpectCompiles({"clang++ --target=x86_64-linux-gnu"}, device, "%zmm");
}

TEST_F(Targets, Avx2CompilesWithClang) {
  const auto device = Device("x86-64", {"avx2", "fma"}, 256);
  ExpectCompiles({"clang++ --target=x86_64-linux-gnu"}, device, "vfmadd");
}

TEST_F(Targets, NeonCompiles) {
  const auto device = Device("aarch64", {"neon"}, 128);
  ExpectCompiles({"aarch64-linux-gnu-g++", "clang++ --target=aarch64-linux-gnu"}, device, "fmla");
}

TEST_F(Targets, PlainX86CompilesWithGcc) {
  ExpectCompiles({"g++", "x86_64-linux-gnu-g++"}, Device("x86-64", {}, 128), "mulp");
}

}  // namespace
}  // namespace kiln::compiler
