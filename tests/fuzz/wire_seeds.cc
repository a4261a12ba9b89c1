// SPDX-License-Identifier: Apache-2.0
#include "google/rpc/status.pb.h"
#include "kiln/v1/types.pb.h"
#include "proto/contract/error.h"
#include "proto/wire.h"
#include "tests/fuzz/seed_files.h"
#include "tests/server/samples.h"

namespace {

template <typename Message, typename Value>
void Write(char choice, const Value& value, kiln::SeedFiles* files) {
  Message message;
  kiln::wire::ToWire(value, &message);
  files->Write(choice + message.SerializeAsString());
}

}  // namespace

int main(int argc, char** argv) {
  using namespace kiln;
  SeedFiles files(argc, argv);
  const Workload workload = server::MatMul();
  Job job = server::Proposal(workload, server::CpuDevice());
  job.losses = {"workers/a: gone"};
  job.histogram = {{"crash", 2}};
  job.started = absl::FromUnixSeconds(5);
  Record record = server::RecordFor(job, workload);
  record.contest = {{"incumbent", 1.02}};
  record.created = absl::FromUnixNanos(1'900'000'000'123'456'789);
  record.plan.steps[0].grid[1].expression = "($0+127)/128";
  record.plan.steps[0].arguments.push_back(
      {.kind = ArgumentKind::kScalar, .is_float = true, .number = 0.5});
  record.measurement.samples_ns = {1, 2, 3};
  record.spec.types = {{"A", DType::kF16}};
  record.spec.strides = {{"A", {600, 1}}};
  record.spec.policy.accumulate = {{"C", DType::kF16}};
  Progress progress;
  progress.phase = "searching";
  progress.failed = {{"crash", 2}};
  progress.changed = absl::FromUnixSeconds(5);

  Write<v1::Record>(0, record, &files);
  Write<v1::Job>(1, job, &files);
  Write<v1::WorkloadSpec>(2, record.spec, &files);
  Write<v1::Device>(3, server::CpuDevice(), &files);
  Write<v1::Plan>(4, record.plan, &files);
  Write<v1::Outcome>(5, server::Failed(3, Stage::kTooSlow, "1000x"), &files);
  Write<v1::Measurement>(6, record.measurement, &files);
  Write<v1::Progress>(7, progress, &files);
  Write<v1::Budget>(8, Budget{77, 0.1, 5, 2'000'000.3}, &files);
  Write<v1::Objective>(9, Objective{CacheState::kCold, Burst::kSustained}, &files);
  Write<v1::Schedule>(10, record.schedule, &files);
  Write<google::rpc::Status>(
      11,
      MakeError(absl::StatusCode::kResourceExhausted, "full",
                {"QUEUE_FULL", {{"retry_after_seconds", "2.5"}, {"field", "client"}}}),
      &files);
}
