// SPDX-License-Identifier: Apache-2.0
// C34: the file system fails on the n-th call. Nothing is half written, the answer is UNAVAILABLE,
// and all is well afterwards.
#include <gtest/gtest.h>
#include <sqlite3.h>

#include "absl/strings/str_cat.h"
#include "db/sqlite_store.h"
#include "proto/contract/error.h"
#include "tests/db/samples.h"
#include "tests/support/faulty_vfs.h"

namespace kiln::db {
namespace {

struct Fault {
  const char* name;
  int calls, code;
};

void PrintTo(const Fault& fault, std::ostream* out) { *out << fault.name; }

class Faults : public ::testing::TestWithParam<Fault> {
 protected:
  std::unique_ptr<Store> Open() {
    absl::StatusOr<std::unique_ptr<Store>> store =
        OpenSqliteStore({.path = directory_.File("kiln.db")});
    EXPECT_TRUE(store.ok()) << store.status();
    return store.ok() ? *std::move(store) : nullptr;
  }
  bool Answers(Store& store, int n) {
    return store.FindPublished(SampleKey(n), SampleCanonical(n)).value().has_value();
  }
  void ExpectSound() {
    sqlite3* db = nullptr;
    ASSERT_EQ(sqlite3_open(directory_.File("kiln.db").c_str(), &db), SQLITE_OK);
    sqlite3_stmt* check = nullptr;
    sqlite3_prepare_v2(db, "PRAGMA integrity_check", -1, &check, nullptr);
    ASSERT_EQ(sqlite3_step(check), SQLITE_ROW);
    EXPECT_STREQ(reinterpret_cast<const char*>(sqlite3_column_text(check, 0)), "ok");
    sqlite3_finalize(check);
    sqlite3_close(db);
  }

  FaultyVfs vfs_;
  TestDirectory directory_;
};

// One completion, failing at its n-th call for every n until none is left to fail.
TEST_P(Faults, ACompletionIsWholeOrNothingAtAnyFault) {
  auto store = Open();
  ASSERT_TRUE(TuneSample(*store, 0).ok());
  int n = 0, failures = 0;
  for (; n < 200; ++n) {
    Operation operation;
    Job job = store->CreateJob(SampleJob(n + 1), &operation).value();
    job.state = JobState::kSucceeded;
    const Completion completion{job, SampleRecord(n + 1), Publication{"", "publish", "first"}};
    vfs_.Fail(GetParam().calls, n, GetParam().code);
    const absl::StatusOr<std::string> id = store->CompleteJob(completion, 0, JobState::kQueued);
    const bool hit = vfs_.injected() > 0;
    vfs_.Heal();
    EXPECT_TRUE(Answers(*store, 0));
    if (id.ok()) {
      EXPECT_TRUE(Answers(*store, n + 1));
      EXPECT_EQ(store->GetJob(job.name)->record, *id);
      if (!hit) break;
      continue;  // the fault hit a checkpoint, or what SQLite could do without
    }
    ++failures;
    EXPECT_TRUE(absl::IsUnavailable(id.status())) << id.status() << " at " << n;
    EXPECT_FALSE(Answers(*store, n + 1)) << n;
    EXPECT_EQ(store->GetJob(job.name)->state, JobState::kQueued) << n;
    const absl::StatusOr<std::string> again = store->CompleteJob(completion, 0, JobState::kQueued);
    ASSERT_TRUE(again.ok()) << again.status() << " after recovery from " << n;
    EXPECT_TRUE(Answers(*store, n + 1));
  }
  EXPECT_LT(n, 200) << "every call of one completion was made to fail";
  EXPECT_GT(failures, 0);
  EXPECT_GT(store->Counters()["write_failures"], 0);
  store.reset();
  ExpectSound();
}

// The disk fails for good in mid-import and the process goes away: what was acknowledged is there,
// the rest is not.
TEST_P(Faults, WhatFailedIsNotThereAfterARestart) {
  for (int n : {0, 3, 17, 40}) {
    auto store = Open();
    ASSERT_TRUE(TuneSample(*store, 1000 + n).ok());
    std::vector<Record> records;
    for (int i = 0; i < 50; ++i) records.push_back(SampleRecord(2000 + n * 100 + i));
    vfs_.Fail(GetParam().calls, n, GetParam().code, 1 << 30);
    const absl::Status status = store->ImportRecords(records);
    store.reset();
    vfs_.Heal();
    store = Open();
    EXPECT_TRUE(Answers(*store, 1000 + n));
    int there = 0;
    for (const Record& record : records) {
      there += store->FindPublished(record.key, record.canonical).value().has_value();
    }
    EXPECT_TRUE(there == 0 || there == 50) << there << ": never half";
    EXPECT_TRUE(!status.ok() || there == 50) << n;
    // What was written whole but could not be synced may turn out to be there, as after a power
    // loss.
    EXPECT_TRUE(status.ok() || there == 0 || (GetParam().calls & FaultyVfs::kSync)) << n;
    store.reset();
    ExpectSound();
  }
}

TEST_P(Faults, OpeningFailsCleanlyAndSucceedsAfterwards) {
  { ASSERT_TRUE(TuneSample(*Open(), 1).ok()); }
  for (int n = 0; n < 40; ++n) {
    vfs_.Fail(GetParam().calls, n, GetParam().code);
    const absl::Status status = OpenSqliteStore({.path = directory_.File("kiln.db")}).status();
    const bool hit = vfs_.injected() > 0;
    vfs_.Heal();
    EXPECT_TRUE(status.ok() || absl::IsUnavailable(status)) << status;
    auto store = Open();
    EXPECT_TRUE(Answers(*store, 1));
    if (!hit) break;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Disk, Faults,
    ::testing::Values(Fault{"WriteFails", FaultyVfs::kWrite, SQLITE_IOERR_WRITE},
                      Fault{"DiskFull", FaultyVfs::kWrite, SQLITE_FULL},
                      Fault{"SyncFails", FaultyVfs::kSync, SQLITE_IOERR_FSYNC},
                      Fault{"AnyFails", FaultyVfs::kWrite | FaultyVfs::kSync, SQLITE_IOERR}),
    [](const auto& info) { return info.param.name; });

TEST(Faults, ReadsThatFailAreUnavailableAndRecover) {
  FaultyVfs vfs;
  TestDirectory directory;
  const std::string path = directory.File("kiln.db");
  { ASSERT_TRUE(TuneSample(**OpenSqliteStore({.path = path}), 1).ok()); }
  for (int n = 0; n < 4; ++n) {
    auto store = OpenSqliteStore({.path = path});
    ASSERT_TRUE(store.ok());
    vfs.Fail(FaultyVfs::kRead, n, SQLITE_IOERR_READ);
    const auto found = (*store)->FindPublished(SampleKey(1), SampleCanonical(1));
    vfs.Heal();
    EXPECT_TRUE(found.ok() || absl::IsUnavailable(found.status())) << found.status();
    EXPECT_TRUE((*store)->FindPublished(SampleKey(1), SampleCanonical(1))->has_value());
  }
}

// A lock that cannot be had for a moment is waited for, not shown.
TEST(Faults, ABusyFileIsWaitedFor) {
  FaultyVfs vfs;
  TestDirectory directory;
  auto store = OpenSqliteStore({.path = directory.File("kiln.db")});
  ASSERT_TRUE(store.ok());
  ASSERT_TRUE(TuneSample(**store, 1).ok());
  vfs.Fail(FaultyVfs::kLock, 0, SQLITE_BUSY, 5);
  EXPECT_TRUE((*store)->FindPublished(SampleKey(1), SampleCanonical(1))->has_value());
  vfs.Fail(FaultyVfs::kLock, 0, SQLITE_BUSY, 3);
  EXPECT_TRUE((*store)->SetSalt(1).ok());
  EXPECT_GT(vfs.injected(), 0);
}

}  // namespace
}  // namespace kiln::db
