// SPDX-License-Identifier: Apache-2.0
// The steps of a job's life, and the order in which jobs are served.
#include "server/job_steps.h"

#include <gtest/gtest.h>

#include "proto/contract/error.h"
#include "server/fair_share.h"
#include "tests/server/samples.h"

namespace kiln::server {
namespace {

const absl::Time kNow = absl::FromUnixSeconds(1'900'000'000);

TEST(JobSteps, ALeaseBeginsUnderANewEpochAndTheStartIsKept) {
  Job job = PlainProposal(1);
  BeginLease("workers/a", kNow, &job);
  EXPECT_EQ(job.state, JobState::kRunning);
  EXPECT_EQ(job.lease_epoch, 1);
  EXPECT_EQ(job.started, kNow);
  ReturnToQueue(&job);
  EXPECT_EQ(job.worker, "");
  BeginLease("workers/b", kNow + absl::Seconds(9), &job);
  EXPECT_EQ(job.lease_epoch, 2);
  EXPECT_EQ(job.started, kNow);
}

TEST(JobSteps, TheThirdLossFails) {
  Job job = PlainProposal(1);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(job.state, JobState::kQueued);
    BeginLease("workers/a", kNow, &job);
    LoseWorker("signal 9", 3, kNow, &job);
  }
  EXPECT_EQ(job.state, JobState::kFailed);
  EXPECT_EQ(job.losses.size(), 3u);
  EXPECT_EQ(GetErrorInfo(ResultOf(job)).reason, "WORKERS_LOST");
}

TEST(JobSteps, AFailureWithoutACodeStillIsOne) {
  Job job = PlainProposal(1);
  job.state = JobState::kFailed;
  job.histogram["crash"] = 3;
  const absl::Status status = ResultOf(job);
  EXPECT_FALSE(status.ok());
  EXPECT_EQ(GetErrorInfo(status).details["outcomes_crash"], "3");
}

TEST(JobSteps, AnEndedJobHasDoneAllOfItsOutcomes) {
  Job job = PlainProposal(1);
  BeginLease("workers/a", kNow, &job);
  job.progress.done = 1;  // as of the last heartbeat
  job.histogram = {{"measured", 5}, {"crash", 2}};
  Succeed("rec-1", kNow, &job);
  EXPECT_EQ(job.progress.done, 7);
}

TEST(JobSteps, TheBudgetOnlyGrows) {
  Job job = PlainProposal(1);
  EXPECT_FALSE(RaiseBudget({10, 1, 0, 1}, 0, &job));
  EXPECT_FALSE(RaiseBudget(job.budget, 3, &job));
  EXPECT_TRUE(RaiseBudget(job.budget, -1, &job));
  EXPECT_TRUE(RaiseBudget({1000, 1, 0, 1}, 0, &job));
  EXPECT_EQ(job.budget.trials, 1000);
  EXPECT_EQ(job.budget.seconds, 60);
  EXPECT_EQ(job.priority, -1);
}

TEST(JobSteps, WhatIsLeftIsNeverLessThanOneTrial) {
  Job job = PlainProposal(1);
  job.budget.trials = 5;
  job.histogram = {{"measured", 3}, {"mismatch", 4}};
  job.leased_seconds = 100;
  EXPECT_EQ(BudgetLeft(job).trials, 1);
  EXPECT_EQ(BudgetLeft(job).seconds, 0);
}

TEST(JobSteps, ProgressCountsFromWhereTheLeaseBegan) {
  Progress before, reported;
  before.done = 30;
  before.total = 200;
  before.phase = reported.phase = "searching";
  before.changed = kNow;
  reported.done = 5;
  reported.total = 170;
  Progress merged = MergeProgress(before, reported, 30, kNow + absl::Seconds(1));
  EXPECT_EQ(merged.done, 35);
  EXPECT_EQ(merged.total, 200);
  EXPECT_EQ(merged.changed, kNow + absl::Seconds(1));
  merged = MergeProgress(merged, reported, 30, kNow + absl::Seconds(2));
  EXPECT_EQ(merged.changed, kNow + absl::Seconds(1)) << "nothing moved";
}

TEST(FairShare, ScoreIsThatOfBuildbarn) {
  const Executing executing = {{"a", 3}};
  EXPECT_DOUBLE_EQ(Score("a", 0, executing), 4);
  EXPECT_DOUBLE_EQ(Score("b", 0, executing), 1);
  EXPECT_DOUBLE_EQ(Score("b", 200, executing), 4);
  EXPECT_DOUBLE_EQ(Score("a", -100, executing), 2);
}

TEST(FairShare, TiesGoToPriorityThenAgeThenName) {
  Job early = PlainProposal(1, "cpu", "a"), late = PlainProposal(2, "cpu", "a"),
      other = PlainProposal(3, "cpu", "b");
  early.name = "jobs/2";
  late.name = "jobs/1";
  early.created = kNow;
  late.created = other.created = kNow + absl::Seconds(1);
  EXPECT_LT(TurnOf(early, {}), TurnOf(late, {}));
  EXPECT_LT(TurnOf(other, {{"a", 1}}), TurnOf(early, {{"a", 1}}));
  late.created = kNow;
  EXPECT_LT(TurnOf(late, {}), TurnOf(early, {}));
  // Equal scores of different clients: the smaller priority first.
  late.priority = -100;
  early.priority = 0;
  late.client = "b";
  EXPECT_EQ(Score("b", -100, {{"b", 1}}), Score("a", 0, {}));
  EXPECT_LT(TurnOf(late, {{"b", 1}}), TurnOf(early, {{"b", 1}}));
}

}  // namespace
}  // namespace kiln::server
