// SPDX-License-Identifier: Apache-2.0
#include "server/publication.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>

#include "proto/contract/error.h"
#include "server/staleness.h"
#include "tests/server/samples.h"

namespace kiln::server {
namespace {

using ::testing::HasSubstr;

struct Case {
  const char* field;  // in the error
  std::function<void(Record*)> spoil;
};

TEST(CheckRecord, TakesAGoodRecord) {
  const Workload workload = MatMul();
  const Job job = Proposal(workload, CpuDevice());
  EXPECT_TRUE(CheckRecord(job, workload, RecordFor(job, workload)).ok());
}

TEST(CheckRecord, RefusesWhateverTheWorkerGotWrongAndNamesIt) {
  const Workload workload = MatMul();
  const Job job = Proposal(workload, CpuDevice());
  const Case cases[] = {
      {"record.signature", [](Record* r) { r->key.signature = std::string(64, '0'); }},
      {"record.canonical", [](Record* r) { r->canonical += " "; }},
      {"record.device", [](Record* r) { r->device.threads = 64; }},
      {"record.objective", [](Record* r) { r->key.objective.cache = CacheState::kCold; }},
      {"record.verification", [](Record* r) { r->verification = {}; }},
      {"record.verification", [](Record* r) { r->verification.sets = 0; }},
      {"record.verification.max_error", [](Record* r) { r->verification.max_error = 1.5; }},
      {"record.verification.max_error",
       [](Record* r) { r->verification.max_error = std::nan(""); }},
      {"record.verification.max_error",
       [](Record* r) { r->verification.tolerance = std::numeric_limits<double>::infinity(); }},
      {"record.measurement.median_ns", [](Record* r) { r->measurement.median_ns = 0; }},
      {"record.measurement.median_ns", [](Record* r) { r->measurement.median_ns = std::nan(""); }},
      {"record.measurement.median_ns", [](Record* r) { r->measurement.samples = 0; }},
      {"record.measurement.objective",
       [](Record* r) { r->measurement.objective.burst = Burst::kSustained; }},
      {"record.measurement.timer", [](Record* r) { r->measurement.timer = Timer::kSimulated; }},
      {"record.measurement.timer", [](Record* r) { r->measurement.timer = Timer::kCupti; }},
      {"record.plan.tensors", [](Record* r) { r->plan.tensors.pop_back(); }},
      {"record.plan.tensors[2].written", [](Record* r) { r->plan.tensors[2].written = false; }},
      {"record.plan.tensors[0].written", [](Record* r) { r->plan.tensors[0].written = true; }},
      {"record.plan.tensors[2].alias_of", [](Record* r) { r->plan.tensors[2].alias_of = 0; }},
      {"record.plan.features", [](Record* r) { r->plan.features = {"avx512f"}; }},
      {"record.plan.steps[0].artifact",
       [](Record* r) { r->plan.steps[0].artifact = std::string(64, 'a'); }},
      {"record.plan.steps[0].artifact", [](Record* r) { r->plan.steps[0].entry.clear(); }},
      {"record.plan.steps[0].arguments[2]",
       [](Record* r) { r->plan.steps[0].arguments[2].index = 3; }},
      {"record.plan.steps[0].arguments[0]",
       [](Record* r) {
         r->plan.steps[0].arguments[0] = {ArgumentKind::kDim, 0};
       }},
      {"record.plan.steps[0].arguments[0]",
       [](Record* r) {
         r->plan.steps[0].arguments[0] = {ArgumentKind::kWorkspace, 0, 64};
       }},
      {"record.source", [](Record* r) { r->source = std::string(64, 'b'); }},
  };
  for (const Case& c : cases) {
    Record record = RecordFor(job, workload);
    c.spoil(&record);
    const absl::Status status = CheckRecord(job, workload, record);
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << c.field << ": " << status;
    EXPECT_EQ(GetErrorInfo(status).details["field"], c.field) << status;
  }
}

TEST(CheckRecord, RefusesALibraryWherePolicyForbidsIt) {
  const Workload workload = MatMul();
  Job job = Proposal(workload, CpuDevice());
  Record record = RecordFor(job, workload);
  record.plan.steps[0].kind = StepKind::kLibrary;
  EXPECT_TRUE(CheckRecord(job, workload, record).ok());
  job.spec.policy.library = false;
  EXPECT_FALSE(CheckRecord(job, workload, record).ok());
  job.spec.policy.library = true;
  job.spec.policy.fixed_order = true;
  EXPECT_FALSE(CheckRecord(job, workload, record).ok());
}

class Publication : public ::testing::Test {
 protected:
  Decision Decide(std::optional<double> ratio, bool stale = false) {
    Record record = RecordFor(job_, workload_);
    if (ratio) record.contest["incumbent"] = *ratio;
    return DecidePublication(record, RecordFor(job_, workload_), stale);
  }
  const Workload workload_ = MatMul();
  const Job job_ = Proposal(workload_, CpuDevice());
};

TEST_F(Publication, TheFirstRecordIsPublished) {
  EXPECT_TRUE(DecidePublication(RecordFor(job_, workload_), std::nullopt, false).publish);
}

TEST_F(Publication, AnotherMustBeFasterBeyondTheNoise) {
  EXPECT_TRUE(Decide(1.034).publish);
  EXPECT_THAT(Decide(1.034).reason, HasSubstr("1.034x"));
  EXPECT_FALSE(Decide(1.005).publish);
  EXPECT_FALSE(Decide(0.98).publish);
  EXPECT_THAT(Decide(1.005).reason, HasSubstr("noise"));
}

TEST_F(Publication, ItsOwnTimeProvesNothingWithoutAContest) {
  Record fast = RecordFor(job_, workload_, 10);
  EXPECT_FALSE(DecidePublication(fast, RecordFor(job_, workload_, 1000), false).publish);
}

TEST_F(Publication, WideIntervalsRaiseTheBar) {
  Record noisy = RecordFor(job_, workload_);
  noisy.measurement.ci95_lo_ns = 900;
  noisy.measurement.ci95_hi_ns = 1100;
  noisy.contest["incumbent"] = 1.05;
  EXPECT_FALSE(DecidePublication(noisy, RecordFor(job_, workload_), false).publish);
  noisy.contest["incumbent"] = 1.15;
  EXPECT_TRUE(DecidePublication(noisy, RecordFor(job_, workload_), false).publish);
}

TEST_F(Publication, AStaleIncumbentYieldsToAnEqual) {
  EXPECT_TRUE(Decide(0.995, true).publish);
  EXPECT_FALSE(Decide(0.9, true).publish);
  EXPECT_TRUE(Decide(std::nullopt, true).publish) << "it could not be run any more";
}

TEST(Staleness, ComparesAttributesWithTheWorkerThatAgreesMost) {
  const Workload workload = MatMul();
  const Job job = Proposal(workload, CpuDevice());
  const Record record = RecordFor(job, workload);  // g++ 12.2.0 -O3, cpu-c++/1, method 1
  Worker today, other, old;
  today.toolchain = "g++ 12.2.0";
  today.emitter = "cpu-c++/1";
  today.method_version = 1;
  other = today;
  other.toolchain = "g++ 14.1.0";
  old.toolchain = "";
  EXPECT_TRUE(StaleBecause(record, {}).empty()) << "nobody to compare with";
  EXPECT_TRUE(StaleBecause(record, {other, today}).empty());
  EXPECT_TRUE(StaleBecause(record, {old}).empty()) << "what a worker does not say is not compared";
  const auto why = StaleBecause(record, {other});
  ASSERT_EQ(why.size(), 1u);
  EXPECT_THAT(why[0], HasSubstr("g++ 14.1.0"));
  other.method_version = 2;
  other.emitter = "cpu-c++/2";
  EXPECT_EQ(StaleBecause(record, {other}).size(), 3u);
}

}  // namespace
}  // namespace kiln::server
