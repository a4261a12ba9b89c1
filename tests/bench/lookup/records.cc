// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/lookup/records.h"

#include <cstdio>
#include <cstdlib>

#include "proto/contract/workload.h"

namespace kiln::bench {
namespace {

constexpr char kProgram[] =
    "operator MatMul(M, N, K) {\n  input A[M,K], B[K,N];\n  output C[M,N] = sum(A[i,k] * "
    "B[k,j]);\n}\n";
constexpr char kCode[] = "stands for a compiled kernel";
constexpr char kSource[] = "stands for its source";

Argument Tensor(int index) { return {.kind = ArgumentKind::kTensor, .index = index}; }
Argument Scratch(int64_t offset) { return {.kind = ArgumentKind::kWorkspace, .offset = offset}; }

// Pack both sides, then multiply: the shape of a contraction's plan.
Plan PlanOf(int64_t m, int64_t n, int64_t k) {
  Plan plan;
  auto kernel = [&](const char* entry, int64_t blocks, std::vector<Argument> arguments) {
    Step step;
    step.entry = entry;
    step.grid[0].value = blocks;
    step.artifact = Sha256Hex(kCode);
    step.arguments = std::move(arguments);
    plan.steps.push_back(std::move(step));
  };
  kernel("kiln_pack_a", m / 6 + 1, {Tensor(0), Scratch(0)});
  kernel("kiln_pack_b", n / 16 + 1, {Tensor(1), Scratch(m * k * 4)});
  kernel("kiln_multiply", (m / 144 + 1) * (n / 256 + 1),
         {Scratch(0), Scratch(m * k * 4), Tensor(2)});
  plan.workspace_bytes = (m + n) * k * 4;
  plan.tensors = {{16, m * k * 4}, {16, k * n * 4}, {16, m * n * 4}};
  plan.features = {"avx2", "fma"};
  plan.needs = {{"threads", 8}};
  return plan;
}

Measurement MeasurementOf(int64_t n) {
  const double ns = 10000 + static_cast<double>(n % 1000);
  Measurement measurement{.method_version = 1,
                          .samples = 64,
                          .median_ns = ns,
                          .min_ns = ns - 20,
                          .mean_ns = ns + 10,
                          .iqr_ns = 30,
                          .ci95_lo_ns = ns - 5,
                          .ci95_hi_ns = ns + 5,
                          .inner_iterations = 100};
  for (int i = 0; i < 64; ++i) measurement.samples_ns.push_back(static_cast<int64_t>(ns) + i);
  measurement.conditions = {{"clock_mhz_before", "3400"},
                            {"clock_mhz_after", "3400"},
                            {"load", "0.10"},
                            {"threads", "8"}};
  return measurement;
}

}  // namespace

WorkloadSpec NthSpec(int64_t n) {
  WorkloadSpec spec;
  spec.program = kProgram;
  const int64_t m = 1 + n % 1000, columns = 1 + n / 1000;
  spec.dims = {{"M", {m, m}}, {"N", {columns, columns}}, {"K", {64, 64}}};
  return spec;
}

DeviceFingerprint BenchDevice() {
  return {.architecture = "x86-64",
          .model = "BenchmarkOnly-1-1-1",
          .features = {"avx2", "fma"},
          .cores = 8,
          .threads = 8,
          .vector_bits = 256,
          .l1d_bytes = 32768,
          .l2_bytes = 524288,
          .l3_bytes = 33554432,
          .name = "A CPU for benchmarks of lookups"};
}

absl::Status PutBenchArtifacts(db::Store* store) {
  for (const auto& [media, bytes] :
       {std::pair("elf-so", kCode), std::pair("source/c++", kSource)}) {
    absl::Status status =
        store->PutArtifact({.digest = Sha256Hex(bytes), .media = media, .bytes = bytes});
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

Record NthRecord(int64_t n) {
  absl::StatusOr<Workload> workload = CheckWorkload(NthSpec(n));
  if (!workload.ok()) {
    std::fprintf(stderr, "the benchmark's own program is refused: %s\n",
                 workload.status().ToString().c_str());
    std::abort();
  }
  Record record;
  record.device = BenchDevice();
  record.key = {.signature = workload->signature, .device = DeviceId(record.device)};
  record.canonical = workload->canonical;
  record.spec = workload->spec;
  record.schedule = {
      .family = "contraction",
      .version = 1,
      .knobs = {{"kc", 256}, {"mc", 144}, {"mr", 6}, {"nr", 16}, {"order", 1}, {"unroll", n % 4}}};
  record.plan = PlanOf(1 + n % 1000, 1 + n / 1000, 64);
  record.artifacts = {Sha256Hex(kCode), Sha256Hex(kSource)};
  record.source = Sha256Hex(kSource);
  record.measurement = MeasurementOf(n);
  record.verification = {
      .method = "f64-reference/1",
      .sets = 6,
      .max_error = 0.01,
      .tolerance = 1,
      .seed = 1,
      .set_names = {"random", "small-integer", "cancellation", "negative", "denormal", "extreme"}};
  record.baseline = {.name = "openblas 0.3.21 zen", .median_ns = 11000, .ratio = 1.05};
  record.contest = {{"baseline", 1.05}};
  record.toolchain = "g++ 12.2.0 -O3 -mavx2 -mfma";
  record.emitter = "cpu-c++/1";
  record.kiln_version = "0.1.0";
  record.worker = "workers/benchmark-1-0000";
  record.trials = {{"measured", 180}, {"compile", 2}, {"too_slow", 18}};
  record.seed = 1;
  return record;
}

}  // namespace kiln::bench
