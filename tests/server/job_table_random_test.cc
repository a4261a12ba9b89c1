// SPDX-License-Identifier: Apache-2.0
// The job table under random events, alone and from many threads, with restarts and failing writes;
// what must always hold is checked after each step.
#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <random>
#include <thread>

#include "server/job_steps.h"
#include "server/job_table.h"
#include "tests/server/samples.h"
#include "tests/support/fake_clock.h"
#include "tests/support/store_fake.h"

namespace kiln::server {
namespace {

constexpr char kDevice[] = "cpu-0123456789abcdef";

// One actor with its own memory of what it was promised.
class Actor {
 public:
  Actor(JobTable* table, FakeClock* clock, std::string worker, uint64_t seed)
      : table_(table), clock_(clock), worker_(std::move(worker)), random_(seed) {}

  void Forget(JobTable* table) { table_ = table; }

  void Step() {
    switch (random_() % 10) {
      case 0:
      case 1:
      case 2:
        Tune();
        break;
      case 3:
      case 4:
        Lease();
        break;
      case 5:
        Work();
        break;
      case 6:
        End();
        break;
      case 7:
        Withdraw();
        break;
      case 8:
        Lose();
        break;
      default:
        Look();
    }
  }

  // A promise is kept: an operation exists, and is done if and only if its job has ended or it was
  // withdrawn.
  void CheckPromises() {
    for (const auto& [operation, job] : operations_) {
      const auto view = table_->GetOperation(operation);
      ASSERT_TRUE(view.ok()) << operation << ": " << view.status();
      EXPECT_EQ(view->job.name, job);
      EXPECT_EQ(view->done(), view->operation.cancelled || IsEnd(view->job.state));
      if (withdrawn_.count(operation)) {
        EXPECT_TRUE(view->operation.cancelled || IsEnd(view->job.state));
      }
      if (!withdrawn_.count(operation) && view->job.state == JobState::kCancelled) {
        ADD_FAILURE() << job << " was stopped although " << operation << " wants it";
      }
    }
  }

 private:
  void Tune() {
    Job job = PlainProposal(static_cast<int>(random_() % 5), kDevice, worker_);
    job.priority = static_cast<int>(random_() % 3) * 50;
    job.budget.trials = 1 + static_cast<int64_t>(random_() % 500);
    const auto placed = table_->FindOrCreate(job, Operation{"", "", worker_, ""});
    if (placed.ok()) operations_[placed->operation.name] = placed->job.name;
  }
  void Lease() {
    if (!lease_.empty()) return;
    const auto leased = table_->LeaseNext(kDevice, worker_);
    if (!leased.ok() || !leased->has_value()) return;
    lease_ = (*leased)->job.name;
    epoch_ = (*leased)->job.lease_epoch;
    EXPECT_EQ((*leased)->job.worker, worker_);
  }
  void Work() {
    if (lease_.empty()) return;
    Progress progress;
    progress.done = static_cast<int64_t>(random_() % 50);
    const auto directive = table_->Heartbeat(lease_, worker_, epoch_, progress);
    (void)table_->ReportOutcomes(lease_, epoch_, {Measured(static_cast<int>(random_() % 30))});
    if (absl::IsAborted(directive.status()) || (directive.ok() && directive->cancel))
      lease_.clear();
  }
  void End() {
    if (lease_.empty()) return;
    const absl::Time now = clock_->Now();
    absl::Status status;
    switch (random_() % 3) {
      case 0:
        status = table_->ReleaseLease(lease_, worker_, epoch_);
        break;
      case 1:
        status = table_
                     ->Complete(
                         lease_, worker_, epoch_, std::nullopt, std::nullopt,
                         [&](Job* job) { Succeed("rec-1", now, job); }, nullptr)
                     .status();
        break;
      default:
        status =
            table_
                ->Complete(
                    lease_, worker_, epoch_, std::nullopt, std::nullopt,
                    [&](Job* job) { Fail(absl::InternalError("all failed"), now, job); }, nullptr)
                .status();
    }
    if (status.ok() || absl::IsAborted(status)) lease_.clear();
  }
  void Withdraw() {
    if (operations_.empty()) return;
    auto it = operations_.begin();
    std::advance(it, random_() % operations_.size());
    if (table_->CancelOperation(it->first).ok()) withdrawn_.insert(it->first);
  }
  void Lose() {
    if (lease_.empty() || random_() % 2 == 0) return;
    (void)table_->LoseLease(lease_, worker_, epoch_,
                            "lost");  // it still believes that it holds the lease
  }
  void Look() {
    if (operations_.empty()) return;
    auto it = operations_.begin();
    std::advance(it, random_() % operations_.size());
    JobTable::OperationView view;
    const auto watch = table_->Watch(
        it->first, random_() % 2 == 0, [this](const auto&, bool, bool) { ++told_; }, &view);
    if (watch.ok() && *watch != 0 && random_() % 2 == 0) table_->Unwatch(*watch);
  }

  JobTable* table_;
  FakeClock* const clock_;
  const std::string worker_;
  std::mt19937_64 random_;
  std::map<std::string, std::string> operations_;
  std::set<std::string> withdrawn_;
  std::string lease_;
  int64_t epoch_ = 0;
  std::atomic<int> told_{0};
};

TEST(JobTableRandom, InvariantsHoldAfterEachStepOverRestartsAndFailingWrites) {
  for (uint64_t seed = 1; seed <= 12; ++seed) {
    SCOPED_TRACE(seed);
    FakeClock clock;
    db::StoreFake store;
    Counters counters;
    auto table = std::make_unique<JobTable>(&store, &clock, JobLimits{}, &counters);
    std::vector<std::unique_ptr<Actor>> actors;
    for (int i = 0; i < 4; ++i) {
      actors.push_back(std::make_unique<Actor>(table.get(), &clock, absl::StrCat("workers/", i),
                                               seed * 100 + i));
    }
    std::mt19937_64 random(seed);
    for (int step = 0; step < 600; ++step) {
      const bool fails = random() % 20 == 0;
      if (fails) store.FailWrites(absl::UnavailableError("disk full"));
      actors[random() % actors.size()]->Step();
      if (fails) store.FailWrites(absl::OkStatus());
      clock.Advance(absl::Milliseconds(random() % 500));
      ASSERT_EQ(table->CheckInvariants(), "") << "step " << step;
      if (random() % 100 == 0) {
        auto next = std::make_unique<JobTable>(&store, &clock, JobLimits{}, &counters);
        ASSERT_TRUE(next->Recover().ok());
        for (auto& actor : actors) actor->Forget(next.get());
        table = std::move(next);
        ASSERT_EQ(table->CheckInvariants(), "") << "after a restart";
      }
    }
    for (auto& actor : actors) actor->CheckPromises();
  }
}

TEST(JobTableRandom, InvariantsHoldUnderManyThreads) {
  FakeClock clock;
  db::StoreFake store;
  Counters counters;
  JobTable table(&store, &clock, JobLimits{}, &counters);
  std::vector<std::unique_ptr<Actor>> actors;
  for (int i = 0; i < 6; ++i) {
    actors.push_back(std::make_unique<Actor>(&table, &clock, absl::StrCat("workers/", i), 77 + i));
  }
  std::vector<std::thread> threads;
  for (auto& actor : actors) {
    threads.emplace_back([&actor] {
      for (int step = 0; step < 400; ++step) actor->Step();
    });
  }
  std::atomic<bool> stop{false};
  std::thread sweeper([&] {
    while (!stop) {
      clock.Advance(absl::Milliseconds(200));
      table.Checkpoint();
      for (const auto& lease : table.ExpiredLeases()) {
        (void)table.LoseLease(lease.job, lease.worker, lease.epoch, lease.why);
      }
      std::this_thread::yield();
    }
  });
  for (std::thread& thread : threads) thread.join();
  stop = true;
  sweeper.join();
  EXPECT_EQ(table.CheckInvariants(), "");
  for (auto& actor : actors) actor->CheckPromises();
}

}  // namespace
}  // namespace kiln::server
