// SPDX-License-Identifier: Apache-2.0
#include "db/sqlite_store.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "tests/db/store_suite.h"

namespace kiln::db {
namespace {

std::unique_ptr<Store> MustOpen(const std::string& path) {
  absl::StatusOr<std::unique_ptr<Store>> store =
      OpenSqliteStore({.path = path, .owner = "127.0.0.1:7000"});
  EXPECT_TRUE(store.ok()) << store.status();
  return store.ok() ? *std::move(store) : nullptr;
}

INSTANTIATE_TEST_SUITE_P(Sqlite, StoreSuite, ::testing::Values([](const TestDirectory& directory) {
                           return MustOpen(directory.File("kiln.db"));
                         }));

TEST(SqliteStore, EverythingIsThereAfterAReopening) {
  TestDirectory directory;
  std::string record, job, devices;
  {
    auto store = MustOpen(directory.File("kiln.db"));
    record = Describe(*store->GetRecord(TuneSample(*store, 1).value()));
    Operation operation = SampleOperation("bob", "r1");
    job = Describe(*store->CreateJob(SampleJob(2), &operation));
    ASSERT_TRUE(store->SetSalt(5).ok());
    ASSERT_TRUE(store->AddOutcomes(operation.job, 1, {SampleOutcome(0)}).ok());
  }
  auto store = MustOpen(directory.File("kiln.db"));
  const std::optional<Record> found = *store->FindPublished(SampleKey(1), SampleCanonical(1));
  ASSERT_TRUE(found);
  EXPECT_EQ(Describe(*store->GetRecord(found->id)), record);
  EXPECT_EQ(Describe(**store->FindLiveJob(SampleKey(2))), job);
  EXPECT_EQ(*store->Salt(), 5);
  EXPECT_EQ(store->Counters()["records"], 1);
  EXPECT_EQ(store->ListOutcomes(SampleKey(2), 10)->size(), 1u);
  EXPECT_GT(TuneSample(*store, 3).value(), found->id) << "names go on growing";
}

TEST(SqliteStore, ClosingLeavesOneWholeFile) {
  TestDirectory directory;
  const std::string path = directory.File("kiln.db");
  {
    auto store = MustOpen(path);
    ASSERT_TRUE(TuneSample(*store, 1).ok());
    ASSERT_TRUE(store->FindPublished(SampleKey(1), SampleCanonical(1))->has_value());
  }
  EXPECT_NE(access((path + "-wal").c_str(), F_OK), 0);
  EXPECT_NE(access((path + "-shm").c_str(), F_OK), 0);
}

TEST(SqliteStore, ASecondOwnerIsToldWhoTheFirstIs) {
  TestDirectory directory;
  const std::string path = directory.File("kiln.db");
  auto store = MustOpen(path);
  const absl::Status second = OpenSqliteStore({.path = path, .owner = "other"}).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(second)) << second;
  EXPECT_EQ(GetErrorInfo(second).reason, "DATABASE_IN_USE");
  EXPECT_EQ(Detail(second, "owner"), "127.0.0.1:7000");
  EXPECT_EQ(Detail(second, "pid"), absl::StrCat(getpid()));
  EXPECT_NE(Detail(second, "host"), "");
  EXPECT_THAT(std::string(second.message()), ::testing::HasSubstr("127.0.0.1:7000"));
  EXPECT_TRUE(TuneSample(*store, 1).ok()) << "and the first goes on";
  store.reset();
  EXPECT_TRUE(MustOpen(path) != nullptr);
}

TEST(SqliteStore, AKilledOwnerFreesTheFile) {
  TestDirectory directory;
  const std::string path = directory.File("kiln.db");
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  const pid_t child = fork();
  if (child == 0) {
    auto store = OpenSqliteStore({.path = path, .owner = "child"});
    if (store.ok() && write(ready[1], "x", 1) == 1) pause();
    _exit(1);
  }
  char byte;
  ASSERT_EQ(read(ready[0], &byte, 1), 1);
  const absl::Status refused = OpenSqliteStore({.path = path, .owner = "parent"}).status();
  EXPECT_EQ(Detail(refused, "pid"), absl::StrCat(child));
  EXPECT_EQ(Detail(refused, "owner"), "child");
  kill(child, SIGKILL);
  ASSERT_EQ(waitpid(child, nullptr, 0), child);
  close(ready[0]);
  close(ready[1]);
  EXPECT_TRUE(MustOpen(path) != nullptr);
}

}  // namespace
}  // namespace kiln::db
