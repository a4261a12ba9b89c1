// SPDX-License-Identifier: Apache-2.0
#include "server/job_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "proto/contract/error.h"
#include "server/job_steps.h"
#include "tests/server/samples.h"
#include "tests/support/fake_clock.h"
#include "tests/support/store_fake.h"

namespace kiln::server {
namespace {

using ::testing::HasSubstr;

constexpr char kDevice[] = "cpu-0123456789abcdef";

class JobTableTest : public ::testing::Test {
 protected:
  JobTableTest() { Restart(); }
  void Restart() {
    table_ = std::make_unique<JobTable>(&store_, &clock_, limits_, &counters_);
    ASSERT_TRUE(table_->Recover().ok());
  }
  void TearDown() override { EXPECT_EQ(table_->CheckInvariants(), ""); }

  JobTable::Placed Tune(int key, const std::string& client = "alice",
                        const std::string& request_id = "") {
    auto placed = table_->FindOrCreate(PlainProposal(key, kDevice, client),
                                       Operation{"", "", client, request_id});
    EXPECT_TRUE(placed.ok()) << placed.status();
    return *std::move(placed);
  }
  JobTable::Leased Lease(const std::string& worker = "workers/a") {
    auto leased = table_->LeaseNext(kDevice, worker);
    EXPECT_TRUE(leased.ok()) << leased.status();
    EXPECT_TRUE(leased->has_value());
    return **leased;
  }
  JobState StateOf(const std::string& job) { return table_->GetJob(job)->state; }

  FakeClock clock_;
  db::StoreFake store_;
  Counters counters_;
  JobLimits limits_;
  std::unique_ptr<JobTable> table_;
};

TEST_F(JobTableTest, EqualKeysShareOneJobAndEachCallerHasAnOperation) {
  const auto first = Tune(1), second = Tune(1, "bob"), other = Tune(2);
  EXPECT_FALSE(first.joined);
  EXPECT_TRUE(second.joined);
  EXPECT_EQ(first.job.name, second.job.name);
  EXPECT_NE(first.operation.name, second.operation.name);
  EXPECT_NE(first.job.name, other.job.name);
  EXPECT_EQ(table_->GetJob(first.job.name)->operations, 2);
}

TEST_F(JobTableTest, ManyThreadsThatAskAtOnceMakeOneJob) {
  std::vector<std::thread> threads;
  std::mutex mutex;
  std::map<std::string, int> jobs;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 25; ++i) {
        const std::string name = Tune(7).job.name;
        std::lock_guard<std::mutex> lock(mutex);
        ++jobs[name];
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  ASSERT_EQ(jobs.size(), 1u);
  EXPECT_EQ(table_->GetJob(jobs.begin()->first)->operations, 200);
  EXPECT_EQ(counters_.tunes_created, 1);
  EXPECT_EQ(counters_.tunes_joined, 199);
}

TEST_F(JobTableTest, AJoinerRaisesBudgetAndPriority) {
  Job modest = PlainProposal(1, kDevice), large = PlainProposal(1, kDevice);
  modest.budget.trials = 10;
  modest.priority = 5;
  large.budget.trials = 500;
  large.budget.seconds = 120;
  large.priority = -5;
  ASSERT_TRUE(table_->FindOrCreate(modest, {}).ok());
  const auto joined = table_->FindOrCreate(large, {});
  ASSERT_TRUE(joined.ok());
  EXPECT_EQ(joined->job.budget.trials, 500);
  EXPECT_EQ(joined->job.budget.seconds, 120);
  EXPECT_EQ(joined->job.priority, -5);
  EXPECT_EQ(store_.GetJob(joined->job.name)->budget.trials, 500) << "a restart must not lower it";
}

TEST_F(JobTableTest, ARunningJobsWorkerHearsOfARaisedBudgetInTheLeasesTerms) {
  Tune(1);
  const auto lease = Lease();
  Job more = PlainProposal(1, kDevice);
  more.budget.seconds = 90;
  ASSERT_TRUE(table_->FindOrCreate(more, {}).ok());
  const auto directive = table_->Heartbeat(lease.job.name, "workers/a", 1, {});
  ASSERT_TRUE(directive.ok());
  ASSERT_TRUE(directive->budget.has_value());
  EXPECT_EQ(directive->budget->seconds, 90);
}

TEST_F(JobTableTest, ARepeatedRequestIdReturnsTheSameOperation) {
  const auto first = Tune(1, "alice", "id-1");
  const auto repeat = Tune(1, "alice", "id-1");
  EXPECT_EQ(repeat.operation.name, first.operation.name);
  EXPECT_EQ(table_->GetJob(first.job.name)->operations, 1);
  EXPECT_NE(Tune(1, "bob", "id-1").operation.name, first.operation.name)
      << "ids are each client's own";
}

TEST_F(JobTableTest, CancellingOneOfManyLeavesTheJobToTheOthers) {
  const auto first = Tune(1), second = Tune(1, "bob");
  ASSERT_TRUE(table_->CancelOperation(first.operation.name).ok());
  ASSERT_TRUE(table_->CancelOperation(first.operation.name).ok()) << "again changes nothing";
  EXPECT_EQ(StateOf(first.job.name), JobState::kQueued);
  EXPECT_EQ(table_->GetJob(first.job.name)->operations, 1);
  EXPECT_TRUE(table_->GetOperation(first.operation.name)->done());
  EXPECT_TRUE(absl::IsCancelled(table_->GetOperation(first.operation.name)->result()));
  EXPECT_FALSE(table_->GetOperation(second.operation.name)->done());
  ASSERT_TRUE(table_->CancelOperation(second.operation.name).ok());
  EXPECT_EQ(StateOf(first.job.name), JobState::kCancelled);
}

TEST_F(JobTableTest, AfterACancelledJobTheKeyStartsAnew) {
  const auto first = Tune(1);
  ASSERT_TRUE(table_->CancelOperation(first.operation.name).ok());
  const auto second = Tune(1);
  EXPECT_FALSE(second.joined);
  EXPECT_NE(second.job.name, first.job.name);
}

TEST_F(JobTableTest, TheWorkerOfACancelledJobIsToldToStop) {
  const auto tune = Tune(1);
  const auto lease = Lease();
  ASSERT_TRUE(table_->CancelOperation(tune.operation.name).ok());
  const auto directive = table_->Heartbeat(lease.job.name, "workers/a", lease.job.lease_epoch, {});
  ASSERT_TRUE(directive.ok()) << directive.status();
  EXPECT_TRUE(directive->cancel);
  EXPECT_TRUE(table_->ReportOutcomes(lease.job.name, 1, {Measured(0)}).ok())
      << "its outcomes are kept";
  EXPECT_EQ(store_.ListOutcomes(lease.job.key, 10)->size(), 1u);
}

TEST_F(JobTableTest, AnExpiredLeaseReturnsTheJobAndTheOldEpochCompletesNothing) {
  Tune(1);
  const auto old = Lease("workers/a");
  clock_.Advance(absl::Seconds(11));
  ASSERT_EQ(table_->ExpiredLeases().size(), 1u);
  ASSERT_TRUE(table_->LoseLease(old.job.name, "workers/a", 1, "not heard of").ok());
  EXPECT_EQ(StateOf(old.job.name), JobState::kQueued);
  const auto lease = Lease("workers/b");
  EXPECT_EQ(lease.job.lease_epoch, 2);
  EXPECT_EQ(lease.job.attempts, 1);
  const auto end = [&](Job* job) { Succeed("rec-1", clock_.Now(), job); };
  const auto late =
      table_->Complete(old.job.name, "workers/a", 1, std::nullopt, std::nullopt, end, nullptr);
  EXPECT_TRUE(absl::IsAborted(late.status()));
  EXPECT_EQ(GetErrorInfo(late.status()).reason, "LEASE_LOST");
  EXPECT_TRUE(absl::IsAborted(table_->Heartbeat(old.job.name, "workers/a", 1, {}).status()));
  EXPECT_TRUE(table_->ReportOutcomes(old.job.name, 1, {Measured(0)}).ok())
      << "a measurement is a fact";
  EXPECT_EQ(table_->GetJob(old.job.name)->histogram.at("measured"), 1);
  EXPECT_TRUE(absl::IsInvalidArgument(table_->ReportOutcomes(old.job.name, 3, {Measured(0)})));
}

TEST_F(JobTableTest, ThreeLostWorkersFailTheJobWithTheReasons) {
  const auto tune = Tune(1);
  for (int i = 1; i <= 3; ++i) {
    const std::string worker = absl::StrCat("workers/", i);
    const auto lease = Lease(worker);
    ASSERT_TRUE(table_->LoseLease(lease.job.name, worker, i, absl::StrCat("reason ", i)).ok());
  }
  const auto view = table_->GetOperation(tune.operation.name);
  ASSERT_TRUE(view->done());
  EXPECT_EQ(GetErrorInfo(view->result()).reason, "WORKERS_LOST");
  EXPECT_THAT(std::string(view->result().message()), HasSubstr("workers/2: reason 2"));
  EXPECT_EQ(view->job.losses.size(), 3u);
}

TEST_F(JobTableTest, AReleasedLeaseIsNoAttemptAndTimeWithoutALeaseIsNotCounted) {
  Tune(1);
  auto lease = Lease();
  clock_.Advance(absl::Seconds(5));
  ASSERT_TRUE(table_->Heartbeat(lease.job.name, "workers/a", 1, {}).ok());
  ASSERT_TRUE(table_->ReleaseLease(lease.job.name, "workers/a", 1).ok());
  clock_.Advance(absl::Seconds(100));
  lease = Lease("workers/b");
  EXPECT_EQ(lease.job.attempts, 0);
  EXPECT_DOUBLE_EQ(lease.left.seconds, 55);
}

TEST_F(JobTableTest, OutcomesCountOnceHoweverOftenTheyAreReported) {
  Tune(1);
  const auto lease = Lease();
  const std::vector<Outcome> outcomes = {Measured(0), Failed(1, Stage::kCrash, "signal 11")};
  ASSERT_TRUE(table_->ReportOutcomes(lease.job.name, 1, outcomes).ok());
  ASSERT_TRUE(table_->ReportOutcomes(lease.job.name, 1, outcomes).ok());
  const Job job = *table_->GetJob(lease.job.name);
  EXPECT_EQ(job.histogram.at("measured"), 1);
  EXPECT_EQ(job.histogram.at("crash"), 1);
  EXPECT_EQ(job.progress.failed.at("crash"), 1);
  ASSERT_TRUE(table_->ReleaseLease(lease.job.name, "workers/a", 1).ok());
  const auto again = Lease("workers/b");
  EXPECT_EQ(again.left.trials, 198);
  EXPECT_EQ(again.first_sequence, 2);
}

TEST_F(JobTableTest, ProgressNeverFallsOverTheLossOfAWorker) {
  Tune(1);
  auto lease = Lease();
  Progress progress;
  progress.phase = "searching";
  progress.done = 40;
  progress.total = 200;
  progress.best_ns = 500;
  ASSERT_TRUE(table_->Heartbeat(lease.job.name, "workers/a", 1, progress).ok());
  ASSERT_TRUE(table_->LoseLease(lease.job.name, "workers/a", 1, "gone").ok());
  lease = Lease("workers/b");
  progress.done = 1;
  progress.best_ns = 900;
  ASSERT_TRUE(table_->Heartbeat(lease.job.name, "workers/b", 2, progress).ok());
  const Job job = *table_->GetJob(lease.job.name);
  EXPECT_EQ(job.progress.done, 40);
  EXPECT_EQ(job.progress.best_ns, 500);
}

TEST_F(JobTableTest, JobsSurviveARestartAndAWorkerThatComesBackKeepsItsLease) {
  const auto queued = Tune(1);
  const auto lease = Lease();
  Tune(2);
  Restart();
  EXPECT_EQ(StateOf(queued.job.name), JobState::kRunning);
  EXPECT_FALSE(table_->GetOperation(queued.operation.name)->done());
  clock_.Advance(absl::Seconds(12));
  EXPECT_TRUE(table_->ExpiredLeases().empty())
      << "the worker has the grace to find the server again";
  EXPECT_TRUE(absl::IsAborted(table_->KeepLease(lease.job.name, "workers/b", 1)));
  EXPECT_TRUE(absl::IsAborted(table_->KeepLease(lease.job.name, "workers/a", 0)));
  ASSERT_TRUE(table_->KeepLease(lease.job.name, "workers/a", 1).ok());
  EXPECT_EQ(table_->GetJob(lease.job.name)->attempts, 0);
  EXPECT_TRUE(Tune(1).joined);
  EXPECT_EQ(table_->GetJob(queued.job.name)->operations, 2);
}

TEST_F(JobTableTest, ALeaseFoundAtTheStartIsLostIfItsWorkerStaysAway) {
  Tune(1);
  Lease();
  Restart();
  clock_.Advance(absl::Seconds(25));
  const auto expired = table_->ExpiredLeases();
  ASSERT_EQ(expired.size(), 1u);
  EXPECT_THAT(expired[0].why, HasSubstr("restart"));
}

TEST_F(JobTableTest, UnservedJobsFailAfterTheirPatienceAndOthersWait) {
  Job hasty = PlainProposal(1, kDevice), patient = PlainProposal(2, kDevice);
  hasty.budget.wait_worker_seconds = 30;
  const auto a = table_->FindOrCreate(hasty, {});
  const auto b = table_->FindOrCreate(patient, {});
  const absl::Time start = clock_.Now();
  clock_.Advance(absl::Seconds(31));
  table_->FailUnserved([](const std::string&) { return absl::InfinitePast(); }, start);
  EXPECT_EQ(StateOf(a->job.name), JobState::kFailed);
  EXPECT_EQ(table_->GetJob(a->job.name)->error_reason, "NO_WORKER_FOR_DEVICE");
  EXPECT_EQ(StateOf(b->job.name), JobState::kQueued);
  clock_.Advance(absl::Seconds(10'000));
  table_->FailUnserved([&](const std::string&) { return clock_.Now(); }, start);
  EXPECT_EQ(StateOf(b->job.name), JobState::kQueued) << "a worker is there, only busy";
}

TEST_F(JobTableTest, ARefusedWriteLeavesTheJobAsItWas) {
  const auto tune = Tune(1);
  const auto lease = Lease();
  store_.FailWrites(absl::UnavailableError("disk full"));
  const auto end = [&](Job* job) { Succeed("rec-1", clock_.Now(), job); };
  EXPECT_TRUE(absl::IsUnavailable(
      table_->Complete(lease.job.name, "workers/a", 1, std::nullopt, std::nullopt, end, nullptr)
          .status()));
  EXPECT_FALSE(table_->FindOrCreate(PlainProposal(5, kDevice), {}).ok());
  EXPECT_FALSE(table_->CancelOperation(tune.operation.name).ok());
  EXPECT_EQ(StateOf(lease.job.name), JobState::kRunning);
  store_.FailWrites(absl::OkStatus());
  EXPECT_TRUE(
      table_->Complete(lease.job.name, "workers/a", 1, std::nullopt, std::nullopt, end, nullptr)
          .ok());
  EXPECT_EQ(StateOf(lease.job.name), JobState::kSucceeded);
  EXPECT_FALSE(Tune(5).joined) << "the refused creation left nothing behind";
}

TEST_F(JobTableTest, LimitsRefuseWithATimeToComeBack) {
  limits_.max_jobs = 3;
  limits_.max_jobs_per_client = 2;
  limits_.max_operations_per_job = 2;
  Restart();
  Tune(1);
  Tune(2);
  const auto reason = [&](int key, const std::string& client) {
    const auto refused = table_->FindOrCreate(PlainProposal(key, kDevice, client), {});
    EXPECT_TRUE(absl::IsResourceExhausted(refused.status()));
    EXPECT_EQ(GetErrorInfo(refused.status()).details.count("retry_after_seconds"), 1u);
    return GetErrorInfo(refused.status()).reason;
  };
  EXPECT_EQ(reason(3, "alice"), "CLIENT_QUEUE_FULL");
  Tune(3, "bob");
  EXPECT_EQ(reason(4, "carol"), "QUEUE_FULL");
  Tune(1, "bob");
  EXPECT_EQ(reason(1, "carol"), "WAITERS_FULL");
}

TEST_F(JobTableTest, AnUndoneOperationIsNotDeleted) {
  const auto tune = Tune(1);
  EXPECT_TRUE(absl::IsFailedPrecondition(table_->DeleteOperation(tune.operation.name)));
  ASSERT_TRUE(table_->CancelOperation(tune.operation.name).ok());
  EXPECT_TRUE(table_->DeleteOperation(tune.operation.name).ok());
  EXPECT_TRUE(absl::IsNotFound(table_->GetOperation(tune.operation.name).status()));
}

TEST_F(JobTableTest, WatchersHearOfChangesAndOfTheEndOnce) {
  const auto tune = Tune(1);
  const auto other = Tune(1, "bob");
  int changes = 0, ends = 0, other_ends = 0;
  JobTable::OperationView view;
  ASSERT_GT(
      *table_->Watch(
          tune.operation.name, true,
          [&](const std::shared_ptr<const Job>&, bool done, bool) { ++(done ? ends : changes); },
          &view),
      0);
  ASSERT_GT(
      *table_->Watch(
          other.operation.name, false,
          [&](const std::shared_ptr<const Job>&, bool done, bool) { other_ends += done; }, &view),
      0);
  const auto lease = Lease();
  EXPECT_EQ(changes, 1);
  ASSERT_TRUE(table_->CancelOperation(other.operation.name).ok());
  EXPECT_EQ(other_ends, 1);
  const auto end = [&](Job* job) { Succeed("rec-1", clock_.Now(), job); };
  ASSERT_TRUE(
      table_->Complete(lease.job.name, "workers/a", 1, std::nullopt, std::nullopt, end, nullptr)
          .ok());
  EXPECT_EQ(ends, 1);
  EXPECT_EQ(other_ends, 1);
  EXPECT_EQ(*table_->Watch(tune.operation.name, true, nullptr, &view), 0);
  EXPECT_TRUE(view.done());
}

TEST_F(JobTableTest, PlacesInTheQueueFollowTheOrderOfService) {
  const auto a = Tune(1), b = Tune(2);
  EXPECT_EQ(table_->GetJob(a.job.name)->progress.queue_position, 1);
  EXPECT_EQ(table_->GetJob(b.job.name)->progress.queue_position, 2);
  Lease();
  EXPECT_EQ(table_->GetJob(a.job.name)->progress.queue_position, 0);
  EXPECT_EQ(table_->GetJob(b.job.name)->progress.queue_position, 1);
}

TEST_F(JobTableTest, TimeUsedSurvivesARestart) {
  Tune(1);
  const auto lease = Lease();
  clock_.Advance(absl::Seconds(8));
  table_->Checkpoint();
  clock_.Advance(absl::Seconds(1));
  Restart();
  EXPECT_DOUBLE_EQ(table_->GetJob(lease.job.name)->leased_seconds, 8);
}

TEST_F(JobTableTest, AWorkerThatSitsOnAJobFarPastItsBudgetLosesIt) {
  Tune(1);
  const auto lease = Lease();
  for (int i = 0; i < 80; ++i) {
    clock_.Advance(absl::Seconds(5));
    ASSERT_TRUE(table_->Heartbeat(lease.job.name, "workers/a", 1, {}).ok());
  }
  const auto expired = table_->ExpiredLeases();
  ASSERT_EQ(expired.size(), 1u);
  EXPECT_THAT(expired[0].why, HasSubstr("budget"));
}

}  // namespace
}  // namespace kiln::server
