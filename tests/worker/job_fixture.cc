// SPDX-License-Identifier: Apache-2.0
#include "tests/worker/job_fixture.h"

#include "proto/contract/error.h"
#include "worker/device/host_probe.h"

namespace kiln::worker {

void ReporterFake::Report(const Outcome& outcome) {
  std::lock_guard lock(mutex_);
  outcomes_.push_back(outcome);
}
void ReporterFake::Update(const Progress& progress) {
  std::lock_guard lock(mutex_);
  updates_.push_back(progress);
}
Budget ReporterFake::CurrentBudget() {
  std::lock_guard lock(mutex_);
  return budget_;
}
absl::StatusOr<std::string> ReporterFake::FetchArtifact(const std::string& digest) {
  const auto found = artifacts.find(digest);
  if (found == artifacts.end()) return absl::NotFoundError("no such artifact");
  return found->second;
}
std::vector<Outcome> ReporterFake::outcomes() {
  std::lock_guard lock(mutex_);
  return outcomes_;
}
std::vector<Progress> ReporterFake::updates() {
  std::lock_guard lock(mutex_);
  return updates_;
}
void ReporterFake::Raise(const Budget& budget) {
  std::lock_guard lock(mutex_);
  budget_ = budget;
}

absl::StatusOr<TestWorker> TestWorker::Make(const std::string& directory,
                                            absl::Duration compile_limit) {
  TestWorker worker;
  KILN_ASSIGN_OR_RETURN(worker.root, TempRoot::Make(directory, 0));
  KILN_ASSIGN_OR_RETURN(
      worker.compiler,
      HostCompiler::Make({.supervisor = OwnBinary(), .limit = compile_limit}, *worker.root));
  KILN_ASSIGN_OR_RETURN(worker.device, ProbeHost(1));
  return worker;
}

JobTools TestWorker::Tools(const Frontend& frontend) const {
  return {.device = device,
          .frontend = &frontend,
          .compiler = compiler.get(),
          .temp_root = root.get(),
          .binary = OwnBinary(),
          .worker = "workers/test",
          .compile_at_once = 2,
          .run_limit = absl::Seconds(5)};
}

JobLease MatmulLease(const TestWorker& worker, int64_t m, int64_t n, int64_t k) {
  JobLease lease;
  lease.job = "jobs/0123456789abcdef";
  lease.spec.program =
      "operator MatMul(M, N, K) {\n  input A[M,K], B[K,N];\n  output C[M,N] = sum(A[i,k] * "
      "B[k,j]);\n}\n";
  lease.spec.dims = {{"M", {m, m}}, {"N", {n, n}}, {"K", {k, k}}};
  const absl::StatusOr<Workload> workload = CheckWorkload(lease.spec);
  if (workload.ok()) lease.signature = workload->signature;
  lease.device = worker.device;
  lease.budget = {.trials = 100, .seconds = 3600, .seed = 1};
  return lease;
}

int RunJobForEver(const char* directory) {
  absl::StatusOr<TestWorker> worker = TestWorker::Make(directory);
  if (!worker.ok()) return 1;
  const auto frontend = MakeFaultyFrontend({.faults = {Fault::kEndlessLoop}});
  const JobLease lease = MatmulLease(*worker, 32, 32, 32);
  JobTools tools = worker->Tools(*frontend);
  tools.run_limit = absl::Minutes(10);
  ReporterFake reporter(lease.budget);
  CancelToken cancel;
  return RunJob(lease, tools, &reporter, cancel).kind == JobEnd::kRecord ? 0 : 2;
}

}  // namespace kiln::worker
