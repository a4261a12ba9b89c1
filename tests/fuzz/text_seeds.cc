// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz/seed_files.h"
#include "tests/server/samples.h"

int main(int argc, char** argv) {
  using namespace kiln;
  SeedFiles files(argc, argv);
  const Workload workload = server::MatMul();
  Plan plan = server::RecordFor(server::Proposal(workload, server::CpuDevice()), workload).plan;
  plan.needs = {{"threads", 2}};
  plan.workspace_bytes = 4096;
  plan.steps[0].attributes = {{"bytes", 256}};
  plan.steps[0].grid[1].expression = "($0+127)/128";
  plan.steps[0].arguments.push_back(
      {.kind = ArgumentKind::kScalar, .is_float = true, .number = 0.1});
  plan.steps[0].arguments.push_back({.kind = ArgumentKind::kWorkspace, .persistent = true});
  files.Write('\0' + PrintPlan(plan));
  files.Write("\1($0+127)/128*$1-3%2");
  files.Write("\1-($3-1)");
  files.Write("\2contraction/1 kc=256 mc=144 mr=6 nr=16");
  files.Write('\3' + Print(server::CpuDevice()));
}
