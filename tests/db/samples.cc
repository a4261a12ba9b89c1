// SPDX-License-Identifier: Apache-2.0
#include "tests/db/samples.h"

#include <cstdlib>
#include <filesystem>
#include <limits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "db/columns.h"
#include "proto/contract/error.h"

namespace kiln::db {

TestDirectory::TestDirectory() {
  std::string pattern = (std::filesystem::temp_directory_path() / "kiln-db-XXXXXX").string();
  path_ = mkdtemp(pattern.data());
}

TestDirectory::~TestDirectory() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

DeviceFingerprint SampleDevice(int threads) {
  DeviceFingerprint device;
  device.architecture = "x86-64";
  device.model = "AuthenticAMD-25-1-1";
  device.features = {"avx2", "fma"};
  device.cores = threads;
  device.threads = threads;
  device.vector_bits = 256;
  device.l1d_bytes = 32768;
  device.l2_bytes = 524288;
  device.l3_bytes = int64_t{1} << 35;
  device.name = "AMD \"EPYC\"\t7B13";
  device.memory_bytes = int64_t{3} << 33;
  return device;
}

std::string SampleCanonical(int n) {
  return absl::StrCat("operator (A f32[", n, ",7], B f32[7,5]) -> C f32[", n,
                      ",5] { C[i,j] = sum(A[i,k] * B[k,j]) }");
}

Key SampleKey(int n) {
  Key key;
  key.signature = Sha256Hex(absl::StrCat("kiln/1\n", SampleCanonical(n)));
  key.device = DeviceId(SampleDevice());
  return key;
}

WorkloadSpec SampleSpec(int n) {
  WorkloadSpec spec;
  spec.program =
      "operator matmul(A[M,K], B[K,N]) -> C[M,N] {\n  C[i,j] = sum(A[i,k] * B[k,j])\n}\n";
  spec.dims = {{"M", {n, n}}, {"K", {1, std::numeric_limits<int64_t>::max()}}, {"N", {0, 5}}};
  spec.types = {{"A", DType::kF32}, {"B", DType::kBf16}};
  spec.strides = {{"A", {7, 1}}};
  spec.alignment = {{"B", 64}};
  spec.alias = {{"C", "A"}};
  spec.policy.accumulate = {{"C", DType::kF16}};
  spec.policy.tf32 = true;
  spec.policy.library = false;
  return spec;
}

Artifact SampleArtifact(const std::string& bytes) { return {Sha256Hex(bytes), "elf-so", bytes}; }

namespace {

Plan SamplePlan() {
  Plan plan;
  Step fill;
  fill.kind = StepKind::kFill;
  fill.attributes = {{"bytes", 4096}};
  fill.arguments.push_back({.kind = ArgumentKind::kWorkspace, .offset = 128, .persistent = true});
  Step kernel;
  kernel.entry = "kiln_main";
  kernel.grid = {Count{8, ""}, Count{1, "($0+127)/128"}, Count{0, ""}};
  kernel.block = {Count{-3, ""}, Count{}, Count{}};
  kernel.shared_bytes = 65536;
  kernel.artifact = Sha256Hex("code");
  kernel.arguments = {{.kind = ArgumentKind::kTensor, .index = 2, .offset = 64},
                      {.kind = ArgumentKind::kDim, .index = 1},
                      {.kind = ArgumentKind::kScalar, .is_float = true, .number = -0.0},
                      {.kind = ArgumentKind::kScalar, .integer = -7}};
  plan.steps = {fill, kernel};
  plan.workspace_bytes = int64_t{1} << 40;
  plan.persistent_bytes = 4096;
  plan.tensors = {{16, 1024}, {64, 0, true, 0}};
  plan.features = {"avx2", "fma"};
  plan.needs = {{"driver", 580}, {"threads", 2}};
  return plan;
}

Measurement SampleMeasurement(double median_ns) {
  Measurement m;
  m.timer = Timer::kClock;
  m.method_version = 3;
  m.objective = {CacheState::kCold, Burst::kSustained};
  m.samples_ns = {1001, 999, 1000};
  m.samples = 3;
  m.median_ns = median_ns;
  m.min_ns = 0.1;
  m.mean_ns = 1.0 / 3;
  m.iqr_ns = std::numeric_limits<double>::infinity();
  m.ci95_lo_ns = 5e-324;
  m.ci95_hi_ns = 1.7976931348623157e308;
  m.inner_iterations = 0;
  m.rejected = {{"preempted", 2}};
  m.conditions = {{"governor", "performance"}, {"load", "0.5\n\x01\"\\"}};
  return m;
}

template <typename Map>
std::string Join(const Map& map) {
  return absl::StrJoin(map, ",", absl::PairFormatter("="));
}

std::string Describe(const Key& key) { return Print(key); }

}  // namespace

Record SampleRecord(int n, double median_ns) {
  Record r;
  r.key = SampleKey(n);
  r.canonical = SampleCanonical(n);
  r.spec = SampleSpec(n);
  r.device = SampleDevice();
  r.schedule = {"contraction", 2, {{"kc", 256}, {"mr", 6}, {"shift", -1}}};
  r.plan = SamplePlan();
  r.artifacts = {Sha256Hex("code"), Sha256Hex("source")};
  r.source = Sha256Hex("source");
  r.measurement = SampleMeasurement(median_ns);
  r.verification = {"f64-reference/1",          3, 0.25, 1e-6, std::numeric_limits<uint64_t>::max(),
                    {"random", "small-integer"}};
  r.baseline = {"openblas 0.3.21 zen", 1034.5, 1.034};
  r.contest = {{"baseline", 1.034}, {"incumbent", 0.999}};
  r.toolchain = "g++ 12.2.0 -O3 -march=native";
  r.emitter = "c++/1";
  r.kiln_version = "0.1.0";
  r.worker = "host-1/42";
  r.job = "jobs/0000000000000001";
  r.trials = {{"measured", 180}, {"compile", 20}};
  r.budget_exhausted = true;
  r.seed = std::numeric_limits<uint64_t>::max() - 1;
  return r;
}

absl::Status PutSampleArtifacts(Store& store) {
  KILN_RETURN_IF_ERROR(store.PutArtifact(SampleArtifact("code")));
  return store.PutArtifact(SampleArtifact("source"));
}

Job SampleJob(int n) {
  Job job;
  job.key = SampleKey(n);
  job.spec = SampleSpec(n);
  job.canonical = SampleCanonical(n);
  job.device = SampleDevice();
  job.budget = {123, 4.5, std::numeric_limits<uint64_t>::max(), 0};
  job.priority = -2;
  job.client = "alice";
  job.force = true;
  return job;
}

Outcome SampleOutcome(int sequence, Stage stage) {
  Outcome outcome;
  outcome.schedule = {"contraction", 1, {{"kc", 100 + sequence}}};
  outcome.stage = stage;
  if (stage == Stage::kMeasured) {
    outcome.measurement = SampleMeasurement(1000 + sequence);
  } else {
    outcome.reason = "g++: error: ‘x’ was not declared";
  }
  outcome.predicted_ns = 987.5;
  outcome.compile_ns = 123456789;
  outcome.toolchain = "g++ 12.2.0";
  outcome.sequence = sequence;
  return outcome;
}

Operation SampleOperation(const std::string& client, const std::string& request_id) {
  Operation operation;
  operation.client = client;
  operation.request_id = request_id;
  return operation;
}

absl::StatusOr<std::string> TuneSample(Store& store, int n, double median_ns) {
  KILN_RETURN_IF_ERROR(PutSampleArtifacts(store));
  Operation operation = SampleOperation();
  KILN_ASSIGN_OR_RETURN(Job job, store.CreateJob(SampleJob(n), &operation));
  job.state = JobState::kSucceeded;
  return store.CompleteJob({job, SampleRecord(n, median_ns), Publication{"", "publish", "first"}},
                           0, JobState::kQueued);
}

std::string Describe(const Record& r, bool with_samples) {
  Record copy = r;
  if (!with_samples) copy.measurement.samples_ns.clear();
  return absl::StrCat(r.id, "\n", Describe(r.key), "\n", r.canonical, "\n", ToColumn(r.spec), "\n",
                      Print(r.device), " ", r.device.name, " ", r.device.memory_bytes, "\n",
                      Print(r.schedule), "\n", ToColumn(r.plan), "\n",
                      absl::StrJoin(r.artifacts, ","), "\n", EvidenceColumn(r), "\n",
                      absl::StrJoin(copy.measurement.samples_ns, ","));
}

std::string Describe(const Job& j) {
  return absl::StrCat(j.name, "\n", Describe(j.key), "\n", j.canonical, "\n", Print(j.device), "\n",
                      RequestColumn(j), "\n", ConditionColumn(j), "\n", j.client, " ",
                      Print(j.state), " ", j.lease_epoch, " ", j.operations, " ",
                      absl::ToUnixNanos(j.created));
}

std::string Describe(const Outcome& o) {
  return absl::StrCat(Print(o.schedule), " ", Print(o.stage), " ", o.toolchain, " ", o.sequence,
                      "\n", DetailColumn(o));
}

std::string Describe(const Operation& o) {
  return absl::StrCat(o.name, " ", o.job, " ", o.client, " ", o.request_id, " ", o.cancelled, " ",
                      absl::ToUnixNanos(o.created));
}

}  // namespace kiln::db
