// SPDX-License-Identifier: Apache-2.0
#include "server/dispatcher.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>

#include "proto/contract/error.h"
#include "server/job_steps.h"
#include "tests/server/samples.h"
#include "tests/support/fake_clock.h"
#include "tests/support/store_fake.h"

namespace kiln::server {
namespace {

// What a worker's poll was answered with.
struct Mail {
  int answers = 0;
  absl::Status status;
  std::optional<JobTable::Leased> lease;
  bool gone = false;  // the worker hung up

  Dispatcher::Answer Box() {
    return [this](absl::StatusOr<std::optional<JobTable::Leased>> leased) {
      if (gone) return false;
      ++answers;
      status = leased.status();
      if (leased.ok()) lease = *std::move(leased);
      return true;
    };
  }
};

class DispatcherTest : public ::testing::Test {
 protected:
  std::string Register(const std::string& name, int threads = 2) {
    Worker worker;
    worker.name = name;
    worker.host = "host";
    worker.pid = 1;
    worker.device = CpuDevice(threads);
    EXPECT_TRUE(roster_.Register(worker).ok());
    return DeviceId(worker.device);
  }
  JobTable::Placed Tune(int key, const std::string& device, const std::string& client = "alice",
                        int priority = 0) {
    Job job = PlainProposal(key, device, client);
    job.priority = priority;
    auto placed = jobs_.FindOrCreate(job, {});
    EXPECT_TRUE(placed.ok());
    dispatcher_.JobQueued();
    clock_.Advance(absl::Milliseconds(1));
    return *std::move(placed);
  }
  void TearDown() override { EXPECT_EQ(jobs_.CheckInvariants(), ""); }

  FakeClock clock_;
  db::StoreFake store_;
  Counters counters_;
  Roster roster_{&clock_, absl::Seconds(10)};
  JobTable jobs_{&store_, &clock_, {}, &counters_};
  Dispatcher dispatcher_{&jobs_, &roster_, &clock_, &counters_};
};

TEST_F(DispatcherTest, AParkedPollReceivesTheNextJobOfItsDevice) {
  const std::string two = Register("workers/two", 2), four = Register("workers/four", 4);
  Mail mail_two, mail_four;
  dispatcher_.Poll("workers/two", absl::Seconds(30), mail_two.Box());
  dispatcher_.Poll("workers/four", absl::Seconds(30), mail_four.Box());
  EXPECT_EQ(mail_two.answers + mail_four.answers, 0);
  const auto tune = Tune(1, four);
  EXPECT_EQ(mail_two.answers, 0);
  ASSERT_TRUE(mail_four.lease.has_value());
  EXPECT_EQ(mail_four.lease->job.name, tune.job.name);
  EXPECT_EQ(mail_four.lease->job.worker, "workers/four");
  EXPECT_EQ(mail_four.lease->job.lease_epoch, 1);
}

TEST_F(DispatcherTest, APollEndsEmptyWhenItsTimeIsUp) {
  Register("workers/a");
  Mail mail;
  dispatcher_.Poll("workers/a", absl::Seconds(5), mail.Box());
  clock_.Advance(absl::Seconds(4));
  dispatcher_.Sweep();
  EXPECT_EQ(mail.answers, 0);
  clock_.Advance(absl::Seconds(2));
  dispatcher_.Sweep();
  EXPECT_EQ(mail.answers, 1);
  EXPECT_FALSE(mail.lease.has_value());
}

TEST_F(DispatcherTest, AnUnknownWorkerIsToldToRegister) {
  Mail mail;
  dispatcher_.Poll("workers/nobody", absl::Seconds(5), mail.Box());
  EXPECT_EQ(GetErrorInfo(mail.status).reason, "WORKER_UNKNOWN");
}

TEST_F(DispatcherTest, AWorkerThatAsksAgainReceivesTheLeaseThatItHolds) {
  const std::string device = Register("workers/a");
  Tune(1, device);
  Tune(2, device);
  Mail first, again;
  dispatcher_.Poll("workers/a", absl::Seconds(5), first.Box());
  dispatcher_.Poll("workers/a", absl::Seconds(5), again.Box());
  ASSERT_TRUE(again.lease.has_value());
  EXPECT_EQ(again.lease->job.name, first.lease->job.name);
  EXPECT_EQ(again.lease->job.lease_epoch, first.lease->job.lease_epoch);
}

TEST_F(DispatcherTest, ALaterPollOfAWorkerEndsTheEarlier) {
  const std::string device = Register("workers/a");
  Mail first, second;
  dispatcher_.Poll("workers/a", absl::Seconds(30), first.Box());
  dispatcher_.Poll("workers/a", absl::Seconds(30), second.Box());
  EXPECT_EQ(first.answers, 1);
  Tune(1, device);
  EXPECT_EQ(first.answers, 1);
  EXPECT_TRUE(second.lease.has_value());
}

TEST_F(DispatcherTest, ALeaseThatNobodyTookIsNoAttempt) {
  const std::string device = Register("workers/a");
  Register("workers/b");
  Mail gone;
  gone.gone = true;
  dispatcher_.Poll("workers/a", absl::Seconds(30), gone.Box());
  const auto tune = Tune(1, device);
  EXPECT_EQ(jobs_.GetJob(tune.job.name)->state, JobState::kQueued);
  EXPECT_EQ(jobs_.GetJob(tune.job.name)->attempts, 0);
  Mail mail;
  dispatcher_.Poll("workers/b", absl::Seconds(30), mail.Box());
  EXPECT_TRUE(mail.lease.has_value());
}

TEST_F(DispatcherTest, AForgottenPollIsOfferedNothing) {
  const std::string device = Register("workers/a");
  Mail mail;
  const int64_t poll = dispatcher_.Poll("workers/a", absl::Seconds(30), mail.Box());
  dispatcher_.Forget("workers/a", poll);
  const auto tune = Tune(1, device);
  EXPECT_EQ(mail.answers, 0);
  EXPECT_EQ(jobs_.GetJob(tune.job.name)->lease_epoch, 0);
}

TEST_F(DispatcherTest, ClientsShareTheWorkersWhateverTheirNumberOfJobs) {
  const std::string device = Register("workers/a");
  for (int i = 0; i < 6; ++i) Tune(i, device, "greedy");
  Tune(10, device, "modest");
  std::vector<std::string> clients;
  for (int i = 0; i < 3; ++i) {
    const std::string worker = absl::StrCat("workers/", i);
    Register(worker);
    Mail mail;
    dispatcher_.Poll(worker, absl::ZeroDuration(), mail.Box());
    clients.push_back(mail.lease->job.client);
  }
  EXPECT_THAT(clients, ::testing::ElementsAre("greedy", "modest", "greedy"));
}

TEST_F(DispatcherTest, PriorityDecidesWithinAClient) {
  const std::string device = Register("workers/a");
  Tune(1, device, "alice", 10);
  const auto urgent = Tune(2, device, "alice", -10);
  Mail mail;
  dispatcher_.Poll("workers/a", absl::ZeroDuration(), mail.Box());
  EXPECT_EQ(mail.lease->job.name, urgent.job.name);
}

TEST_F(DispatcherTest, ASilentWorkerLosesItsJobToAnother) {
  const std::string device = Register("workers/a");
  Register("workers/b");
  const auto tune = Tune(1, device);
  Mail a, b;
  dispatcher_.Poll("workers/a", absl::Seconds(60), a.Box());
  ASSERT_TRUE(a.lease.has_value());
  dispatcher_.Poll("workers/b", absl::Seconds(60), b.Box());
  clock_.Advance(absl::Seconds(9));
  dispatcher_.Sweep();
  EXPECT_FALSE(b.lease.has_value());
  clock_.Advance(absl::Seconds(2));
  dispatcher_.Sweep();
  ASSERT_TRUE(b.lease.has_value());
  EXPECT_EQ(b.lease->job.name, tune.job.name);
  EXPECT_EQ(b.lease->job.attempts, 1);
  const auto workers = roster_.List();
  EXPECT_TRUE(workers[0].lost);
  EXPECT_FALSE(workers[1].lost);
}

TEST_F(DispatcherTest, TheSweepIsANetForAMissedNotification) {
  const std::string device = Register("workers/a");
  Mail mail;
  dispatcher_.Poll("workers/a", absl::Seconds(30), mail.Box());
  ASSERT_TRUE(
      jobs_.FindOrCreate(PlainProposal(1, device), {}).ok());  // and JobQueued is not called
  EXPECT_EQ(mail.answers, 0);
  dispatcher_.Sweep();
  EXPECT_TRUE(mail.lease.has_value());
  EXPECT_EQ(counters_.swept_leases, 1);
}

TEST_F(DispatcherTest, WithoutAWorkerTheJobFailsAfterItsPatience) {
  Job job = PlainProposal(1, "cpu-of-nobody");
  job.budget.wait_worker_seconds = 600;
  const auto placed = jobs_.FindOrCreate(job, {});
  clock_.Advance(absl::Seconds(599));
  dispatcher_.Sweep();
  EXPECT_EQ(jobs_.GetJob(placed->job.name)->state, JobState::kQueued);
  clock_.Advance(absl::Seconds(2));
  dispatcher_.Sweep();
  EXPECT_EQ(jobs_.GetJob(placed->job.name)->error_reason, "NO_WORKER_FOR_DEVICE");
}

TEST_F(DispatcherTest, DrainingAnswersEveryPollAndTakesNoMore) {
  const std::string device = Register("workers/a");
  Mail parked, late;
  dispatcher_.Poll("workers/a", absl::Seconds(30), parked.Box());
  dispatcher_.Drain(absl::UnavailableError("stops"));
  EXPECT_TRUE(absl::IsUnavailable(parked.status));
  dispatcher_.Poll("workers/a", absl::Seconds(30), late.Box());
  EXPECT_TRUE(absl::IsUnavailable(late.status));
  const auto tune = Tune(1, device);
  EXPECT_EQ(jobs_.GetJob(tune.job.name)->state, JobState::kQueued);
}

TEST(Roster, ANameBelongsToOneLiveProcess) {
  FakeClock clock;
  Roster roster(&clock, absl::Seconds(10));
  Worker worker;
  worker.name = "workers/a";
  worker.pid = 1;
  worker.device = CpuDevice();
  ASSERT_TRUE(roster.Register(worker).ok());
  EXPECT_TRUE(roster.Register(worker).ok()) << "the same process, once more";
  worker.pid = 2;
  EXPECT_EQ(GetErrorInfo(roster.Register(worker)).reason, "WORKER_NAME_TAKEN");
  clock.Advance(absl::Seconds(11));
  EXPECT_TRUE(roster.Register(worker).ok());
}

TEST(Roster, KnowsWhenADeviceWasLastServed) {
  FakeClock clock;
  Roster roster(&clock, absl::Seconds(10));
  Worker worker;
  worker.name = "workers/a";
  worker.device = CpuDevice();
  const std::string device = DeviceId(worker.device);
  EXPECT_EQ(roster.LastPresent(device), absl::InfinitePast());
  ASSERT_TRUE(roster.Register(worker).ok());
  const absl::Time registered = clock.Now();
  const int64_t generation = roster.generation();
  clock.Advance(absl::Seconds(60));
  roster.Sweep({});
  EXPECT_EQ(roster.LastPresent(device), registered);
  EXPECT_TRUE(roster.PresentDevices().empty());
  EXPECT_GT(roster.generation(), generation);
  ASSERT_TRUE(roster.Touch("workers/a").ok());
  EXPECT_EQ(roster.LastPresent(device), clock.Now());
}

}  // namespace
}  // namespace kiln::server
