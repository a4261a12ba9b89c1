// SPDX-License-Identifier: Apache-2.0
#include "tests/server/samples.h"

#include <cstdio>
#include <cstdlib>

#include "absl/strings/str_cat.h"

namespace kiln::server {

WorkloadSpec MatMulSpec(int64_t m, int64_t n, int64_t k) {
  WorkloadSpec spec;
  spec.program =
      "operator MatMul(M, N, K) {\n  input A[M,K], B[K,N];\n  output C[M,N] = sum(A[i,k] * "
      "B[k,j]);\n}\n";
  spec.dims = {{"M", {m, m}}, {"N", {n, n}}, {"K", {k, k}}};
  return spec;
}

Workload MatMul(int64_t m, int64_t n, int64_t k) {
  absl::StatusOr<Workload> workload = CheckWorkload(MatMulSpec(m, n, k));
  if (!workload.ok()) {
    std::fprintf(stderr, "%s\n", workload.status().ToString().c_str());
    std::abort();
  }
  return *std::move(workload);
}

DeviceFingerprint CpuDevice(int threads) {
  DeviceFingerprint device;
  device.architecture = "x86-64";
  device.model = "AuthenticAMD-25-1-1";
  device.features = {"avx2", "fma"};
  device.cores = device.threads = threads;
  device.vector_bits = 256;
  device.l1d_bytes = 32 << 10;
  device.l2_bytes = 512 << 10;
  device.l3_bytes = 32 << 20;
  device.name = "AMD EPYC";
  device.memory_bytes = int64_t{24} << 30;
  return device;
}

Job Proposal(const Workload& workload, const DeviceFingerprint& device, const std::string& client) {
  Job job;
  job.key = {workload.signature, DeviceId(device), Objective{}, 0};
  job.spec = workload.spec;
  job.canonical = workload.canonical;
  job.device = device;
  job.client = client;
  return job;
}

Job PlainProposal(int number, const std::string& device, const std::string& client) {
  Job job;
  job.key = {absl::StrCat("signature-", number), device, Objective{}, 0};
  job.canonical = absl::StrCat("text ", number);
  job.device = CpuDevice();
  job.client = client;
  return job;
}

Artifact CompiledKernel() {
  const std::string bytes =
      "\x7f"
      "ELF and so on";
  return {Sha256Hex(bytes), "elf-so", bytes};
}

Artifact KernelSource() {
  const std::string bytes = "void kernel() {}\n";
  return {Sha256Hex(bytes), "source/c++", bytes};
}

Record RecordFor(const Job& job, const Workload& workload, double median_ns) {
  Record record;
  record.key = job.key;
  record.canonical = workload.canonical;
  record.spec = job.spec;
  record.device = job.device;
  record.schedule = {"contraction", 1, {{"mr", 6}, {"nr", 16}}};
  Step step;
  step.entry = "kernel";
  step.grid = {Count{4, ""}, Count{1, ""}, Count{1, ""}};
  step.artifact = CompiledKernel().digest;
  step.arguments = {
      {ArgumentKind::kTensor, 0}, {ArgumentKind::kTensor, 1}, {ArgumentKind::kTensor, 2}};
  record.plan.steps = {step};
  record.plan.tensors = {{16, 1}, {16, 1}, {16, 1, true}};
  record.plan.features = {"avx2"};
  record.artifacts = {CompiledKernel().digest, KernelSource().digest};
  record.source = KernelSource().digest;
  record.measurement.timer = Timer::kClock;
  record.measurement.method_version = 1;
  record.measurement.objective = job.key.objective;
  record.measurement.samples = 30;
  record.measurement.median_ns = median_ns;
  record.measurement.ci95_lo_ns = median_ns * 0.995;
  record.measurement.ci95_hi_ns = median_ns * 1.005;
  record.verification = {"f64-reference/1", 3, 0.25, 1.0, 7, {"random", "small-integer"}};
  record.toolchain = "g++ 12.2.0 -O3";
  record.emitter = "cpu-c++/1";
  record.kiln_version = "0.1.0";
  return record;
}

Outcome Measured(int sequence, double median_ns) {
  Outcome outcome;
  outcome.schedule = {"contraction", 1, {{"mr", sequence + 1}}};
  outcome.stage = Stage::kMeasured;
  outcome.measurement.emplace();
  outcome.measurement->median_ns = median_ns;
  outcome.measurement->samples = 5;
  outcome.sequence = sequence;
  return outcome;
}

Outcome Failed(int sequence, Stage stage, const std::string& reason) {
  Outcome outcome;
  outcome.schedule = {"contraction", 1, {{"mr", sequence + 1}}};
  outcome.stage = stage;
  outcome.reason = reason;
  outcome.toolchain = "g++ 12.2.0";
  outcome.sequence = sequence;
  return outcome;
}

}  // namespace kiln::server
