// SPDX-License-Identifier: Apache-2.0
// C35, C47: many threads on one store. Nobody sees a lock, one key has one job, reads go on beside
// writes.
#include <gtest/gtest.h>

#include <atomic>
#include <mutex>
#include <set>
#include <thread>

#include "absl/strings/str_cat.h"
#include "db/sqlite_store.h"
#include "proto/contract/error.h"
#include "tests/db/samples.h"

namespace kiln::db {
namespace {

constexpr int kThreads = 32;

void InThreads(const std::function<void(int)>& body) {
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) threads.emplace_back(body, i);
  for (std::thread& thread : threads) thread.join();
}

TEST(Concurrency, MixedReadsAndCommitsNeverFail) {
  TestDirectory directory;
  auto store = OpenSqliteStore({.path = directory.File("kiln.db"), .max_readers = 8});
  ASSERT_TRUE(store.ok()) << store.status();
  for (int n = 0; n < 8; ++n) ASSERT_TRUE(TuneSample(**store, n).ok());
  std::atomic<int> failures{0};
  auto expect = [&](const absl::Status& status) {
    if (!status.ok() && failures++ < 5) ADD_FAILURE() << status;
  };
  InThreads([&](int thread) {
    for (int i = 0; i < 60; ++i) {
      const int n = 1000 + thread * 1000 + i;
      if (i % 4 == thread % 4) {
        expect(TuneSample(**store, n).status());
        if (!(*store)->FindPublished(SampleKey(n), SampleCanonical(n))->has_value()) {
          ADD_FAILURE() << "an acknowledged record is not there: " << n;
        }
      } else {
        expect((*store)->FindPublished(SampleKey(i % 8), SampleCanonical(i % 8)).status());
        expect((*store)->ListJobs(true, {5, ""}).status());
        expect((*store)->Salt().status());
      }
    }
  });
  EXPECT_EQ(failures, 0);
  std::map<std::string, int64_t> counters = (*store)->Counters();
  EXPECT_EQ(counters["records"], 8 + kThreads * 15);
  EXPECT_LT(counters["commits"], counters["writes"]) << "writes that wait are committed together";
  EXPECT_LE(counters["readers"], 8);
}

TEST(Concurrency, AThousandEqualRequestsMakeOneJob) {
  TestDirectory directory;
  auto store = OpenSqliteStore({.path = directory.File("kiln.db")});
  ASSERT_TRUE(store.ok()) << store.status();
  std::mutex mutex;
  std::set<std::string> jobs, operations;
  std::atomic<int> created{0};
  InThreads([&](int) {
    for (int i = 0; i < 32; ++i) {
      Operation operation = SampleOperation();
      const absl::StatusOr<Job> job = (*store)->CreateJob(SampleJob(1), &operation);
      if (job.ok()) {
        ++created;
      } else {
        ASSERT_TRUE(absl::IsAlreadyExists(job.status())) << job.status();
        operation.job = GetErrorInfo(job.status()).details["job"];
        absl::StatusOr<Operation> added = (*store)->AddOperation(operation);
        ASSERT_TRUE(added.ok()) << added.status();
        operation = *added;
      }
      std::lock_guard<std::mutex> lock(mutex);
      jobs.insert(operation.job);
      operations.insert(operation.name);
    }
  });
  EXPECT_EQ(created, 1);
  EXPECT_EQ(jobs.size(), 1u);
  EXPECT_EQ(operations.size(), 1024u);
  EXPECT_EQ((*store)->GetJob(*jobs.begin())->operations, 1024);
}

// One refused write takes nothing along that shares its commit.
TEST(Concurrency, ARefusedWriteSparesItsGroup) {
  TestDirectory directory;
  auto store = OpenSqliteStore({.path = directory.File("kiln.db")});
  ASSERT_TRUE(store.ok()) << store.status();
  std::atomic<int> stored{0};
  InThreads([&](int thread) {
    for (int i = 0; i < 20; ++i) {
      if (thread % 2) {
        EXPECT_TRUE(absl::IsNotFound((*store)->CancelOperation("operations/00000000000000ff")));
      } else {
        EXPECT_TRUE((*store)->PutArtifact(SampleArtifact(absl::StrCat(thread, "/", i))).ok());
        ++stored;
      }
    }
  });
  EXPECT_EQ((*store)->Counters()["artifacts"], stored);
}

// The log is copied back while readers come and go without a pause.
TEST(Concurrency, TheLogStaysBoundedUnderReaders) {
  TestDirectory directory;
  const std::string path = directory.File("kiln.db");
  auto store = OpenSqliteStore({.path = path});
  ASSERT_TRUE(store.ok()) << store.status();
  ASSERT_TRUE(TuneSample(**store, 0).ok());
  std::atomic<bool> done{false};
  std::vector<std::thread> readers;
  for (int i = 0; i < 4; ++i) {
    readers.emplace_back([&] {
      while (!done) {
        EXPECT_TRUE((*store)->FindPublished(SampleKey(0), SampleCanonical(0))->has_value());
      }
    });
  }
  for (int batch = 1; batch <= 12; ++batch) {
    std::vector<Record> records;
    for (int n = 0; n < 1000; ++n) records.push_back(SampleRecord(batch * 1000 + n));
    EXPECT_TRUE((*store)->ImportRecords(records).ok());
  }
  done = true;
  for (std::thread& reader : readers) reader.join();
  EXPECT_GT((*store)->Counters()["checkpoints"], 0);
  EXPECT_LT((*store)->Counters()["wal_bytes"], int64_t{128} << 20);
}

}  // namespace
}  // namespace kiln::db
