// SPDX-License-Identifier: Apache-2.0
#include <limits>

#include "db/columns.h"
#include "tests/fuzz/seed_files.h"
#include "tests/server/samples.h"

int main(int argc, char** argv) {
  using namespace kiln;
  SeedFiles files(argc, argv);
  const Workload workload = server::MatMul();
  Job job = server::Proposal(workload, server::CpuDevice());
  job.losses = {"workers/a: gone"};
  job.histogram = {{"crash", 2}};
  job.progress.failed = {{"crash", 2}};
  Record record = server::RecordFor(job, workload);
  record.contest = {{"incumbent", 1.02}, {"baseline", std::numeric_limits<double>::infinity()}};
  record.plan.steps[0].grid[1].expression = "($0+127)/128";
  record.plan.steps[0].arguments.push_back(
      {.kind = ArgumentKind::kScalar, .is_float = true, .number = -0.0});
  record.measurement.conditions = {{"load", "0.5 \"\n\x01"}};
  WorkloadSpec spec = job.spec;
  spec.types = {{"A", DType::kF16}};
  spec.strides = {{"A", {600, 1}}};
  spec.policy.accumulate = {{"C", DType::kF16}};
  Outcome outcome = server::Measured(3);
  outcome.measurement->samples_ns = {1, 2, 3};

  files.Write('\0' + db::ToColumn(record.plan));
  files.Write('\1' + db::EvidenceColumn(record));
  files.Write('\2' + db::ToColumn(spec));
  files.Write('\3' + db::DetailColumn(outcome));
  files.Write('\4' + db::RequestColumn(job));
  files.Write('\5' + db::ConditionColumn(job));
  files.Write('\6' + db::ToColumn(std::vector<std::string>{"a", "\\\n"}));
  files.Write('\7' + db::ToColumn(std::vector<int64_t>{-1, 1}));
}
