// SPDX-License-Identifier: Apache-2.0
// Lookups with their memory, and the publisher that makes it old.
#include "server/lookup.h"

#include <gtest/gtest.h>

#include "proto/contract/error.h"
#include "server/job_steps.h"
#include "server/publisher.h"
#include "tests/server/samples.h"
#include "tests/support/fake_clock.h"
#include "tests/support/store_fake.h"

namespace kiln::server {
namespace {

class LookupTest : public ::testing::Test {
 protected:
  LookupTest() {
    EXPECT_TRUE(lookup_.Start().ok());
    question_.workload = std::make_shared<const Workload>(MatMul());
    question_.device = CpuDevice();
    question_.key = lookup_.KeyOf(*question_.workload, DeviceId(question_.device), Objective{});
    EXPECT_TRUE(store_.PutArtifact(CompiledKernel()).ok());
    EXPECT_TRUE(store_.PutArtifact(KernelSource()).ok());
  }
  JobTable::Leased LeaseJob() {
    EXPECT_TRUE(jobs_.FindOrCreate(Proposal(*question_.workload, question_.device), {}).ok());
    return **jobs_.LeaseNext(question_.key.device, "workers/a");
  }
  absl::StatusOr<std::string> Conclude(const JobTable::Leased& lease, double median_ns,
                                       std::optional<double> ratio = std::nullopt) {
    Conclusion conclusion;
    conclusion.record = RecordFor(lease.job, *question_.workload, median_ns);
    if (ratio) conclusion.record->contest["incumbent"] = *ratio;
    return publisher_.Conclude(lease.job.name, "workers/a", lease.job.lease_epoch,
                               std::move(conclusion));
  }

  FakeClock clock_;
  db::StoreFake store_;
  Counters counters_;
  Roster roster_{&clock_, absl::Seconds(10)};
  Lookup lookup_{&store_, &roster_, &clock_, absl::Seconds(15), 1 << 20, &counters_};
  JobTable jobs_{&store_, &clock_, {}, &counters_};
  Publisher publisher_{&store_, &jobs_, &lookup_, &clock_, &counters_};
  Question question_;
};

TEST_F(LookupTest, AnAbsenceIsRememberedUntilSomethingIsPublished) {
  EXPECT_EQ(lookup_.Find(question_)->match, Match::kNone);
  EXPECT_EQ(lookup_.Find(question_)->match, Match::kNone);
  EXPECT_EQ(counters_.lookups_from_memory, 1);
  const Freshness before = lookup_.FreshnessOf(question_.key);
  EXPECT_TRUE(lookup_.IsCurrent(before));
  const auto record = Conclude(LeaseJob(), 1000);
  ASSERT_TRUE(record.ok()) << record.status();
  EXPECT_FALSE(lookup_.IsCurrent(before));
  EXPECT_EQ(lookup_.Find(question_)->record->id, *record);
  EXPECT_EQ(lookup_.Find(question_)->match, Match::kExact);
}

TEST_F(LookupTest, ReadsThatFailAreErrorsAndAreNotRemembered) {
  store_.FailReads(absl::UnavailableError("I/O error"));
  EXPECT_TRUE(absl::IsUnavailable(lookup_.Find(question_).status()));
  store_.FailReads(absl::OkStatus());
  EXPECT_EQ(lookup_.Find(question_)->match, Match::kNone);
}

TEST_F(LookupTest, WhatIsInMemoryAnswersWhileTheStoreFails) {
  ASSERT_TRUE(Conclude(LeaseJob(), 1000).ok());
  ASSERT_TRUE(lookup_.Find(question_).ok());
  store_.FailReads(absl::UnavailableError("I/O error"));
  EXPECT_EQ(lookup_.Find(question_)->match, Match::kExact);
}

TEST_F(LookupTest, ATextThatDiffersUnderOneSignatureIsAMiss) {
  ASSERT_TRUE(Conclude(LeaseJob(), 1000).ok());
  ASSERT_EQ(lookup_.Find(question_)->match, Match::kExact);
  Workload forged = MatMul();
  forged.canonical += "x";
  question_.workload = std::make_shared<const Workload>(forged);
  EXPECT_EQ(lookup_.Find(question_)->match, Match::kNone);
}

TEST_F(LookupTest, AWorkersArrivalMakesAnswersOld) {
  const Freshness before = lookup_.FreshnessOf(question_.key);
  Worker worker;
  worker.name = "workers/a";
  worker.device = CpuDevice();
  ASSERT_TRUE(roster_.Register(worker).ok());
  EXPECT_FALSE(lookup_.IsCurrent(before));
}

TEST_F(LookupTest, ADeviceIsRememberedWhenItsWorkersAreGone) {
  EXPECT_TRUE(absl::IsUnavailable(lookup_.Resolve("cpu").status())) << "within the grace";
  clock_.Advance(absl::Seconds(16));
  EXPECT_TRUE(absl::IsFailedPrecondition(lookup_.Resolve("cpu").status()));
  ASSERT_TRUE(lookup_.RememberDevice(CpuDevice()).ok());
  EXPECT_EQ((*lookup_.Resolve("cpu"))->device, CpuDevice());
  EXPECT_EQ(store_.ListDevices()->size(), 1u);
}

TEST_F(LookupTest, TheSaltIsPartOfTheKey) {
  ASSERT_TRUE(Conclude(LeaseJob(), 1000).ok());
  ASSERT_TRUE(store_.SetSalt(1).ok());
  Lookup after(&store_, &roster_, &clock_, absl::ZeroDuration(), 1 << 20, &counters_);
  ASSERT_TRUE(after.Start().ok());
  question_.key = after.KeyOf(*question_.workload, DeviceId(question_.device), Objective{});
  EXPECT_EQ(question_.key.salt, 1);
  EXPECT_EQ(after.Find(question_)->match, Match::kNone);
}

TEST_F(LookupTest, TheIncumbentAnswersWhereANewRecordIsNotBetter) {
  const auto first = Conclude(LeaseJob(), 1000);
  EXPECT_EQ(*Conclude(LeaseJob(), 990, 1.003), *first);
  EXPECT_EQ(lookup_.Find(question_)->record->id, *first);
  EXPECT_EQ(counters_.not_better, 1);
  EXPECT_EQ(store_.ListRecords({}, {})->items.size(), 2u) << "records are append-only";
  EXPECT_NE(*Conclude(LeaseJob(), 800, 1.25), *first);
}

TEST_F(LookupTest, KeepingNeedsTheIncumbentsName) {
  const auto first = Conclude(LeaseJob(), 1000);
  const auto lease = LeaseJob();
  Conclusion conclusion;
  conclusion.keep = "rec-other";
  EXPECT_EQ(
      GetErrorInfo(publisher_.Conclude(lease.job.name, "workers/a", 1, conclusion).status()).reason,
      "NOT_THE_INCUMBENT");
  conclusion.keep = *first;
  EXPECT_EQ(*publisher_.Conclude(lease.job.name, "workers/a", 1, conclusion), *first);
  EXPECT_EQ(jobs_.GetJob(lease.job.name)->record, *first);
}

TEST_F(LookupTest, WhatCannotBeReadBackIsNotReportedAsStored) {
  const auto lease = LeaseJob();
  // The store takes the write and loses it: reads fail from here on.
  Conclusion conclusion;
  conclusion.record = RecordFor(lease.job, *question_.workload);
  class Losing final : public Clock {
   public:
    explicit Losing(db::StoreFake* store) : store_(store) {}
    absl::Time Now() const override {
      store_->FailReads(
          absl::UnavailableError("I/O error"));  // asked last before the job is completed
      return absl::Now();
    }

   private:
    db::StoreFake* const store_;
  } losing(&store_);
  Publisher publisher(&store_, &jobs_, &lookup_, &losing, &counters_);
  const auto result = publisher.Conclude(lease.job.name, "workers/a", 1, std::move(conclusion));
  EXPECT_TRUE(absl::IsDataLoss(result.status())) << result.status();
  EXPECT_EQ(counters_.not_stored, 1);
}

TEST(Lru, DropsTheLeastRecentlyUsedAndStaysWithinItsLimit) {
  Lru<int> lru(16 * 4000);
  for (int i = 0; i < 1000; ++i) lru.Insert(absl::StrCat("key ", i), i, 100);
  EXPECT_LE(lru.cost(), 16u * 4000);
  EXPECT_FALSE(lru.Find("key 0").has_value());
  EXPECT_EQ(lru.Find("key 999"), 999);
  lru.Insert("key 999", 7, 100);
  EXPECT_EQ(lru.Find("key 999"), 7);
  lru.Erase("key 999");
  EXPECT_FALSE(lru.Find("key 999").has_value());
  lru.Insert("huge", 1, 1 << 20);
  EXPECT_FALSE(lru.Find("huge").has_value());
}

}  // namespace
}  // namespace kiln::server
