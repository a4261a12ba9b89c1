// SPDX-License-Identifier: Apache-2.0
// Migrations: the released ones from an empty file, and the mechanism with steps made up here.
#include "db/migrate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <thread>

#include "db/open_database.h"
#include "proto/contract/error.h"
#include "tests/db/samples.h"

namespace kiln::db {
namespace {

std::vector<std::string> Backups(const TestDirectory& directory) {
  std::vector<std::string> found;
  for (const auto& entry : std::filesystem::directory_iterator(directory.path())) {
    if (entry.path().string().find(".backup") != std::string::npos) found.push_back(entry.path());
  }
  return found;
}

std::vector<Migration> WithStep(const char* sql, const char* verify) {
  std::vector<Migration> migrations = Migrations();
  const int last = migrations.back().version;
  migrations.push_back({last + 1, "999_test", sql, verify});
  return migrations;
}

TEST(Migrate, VersionsFollowOneAnotherFromOne) {
  int version = 0;
  for (const Migration& migration : Migrations()) {
    EXPECT_EQ(migration.version, ++version);
    EXPECT_NE(std::string(migration.verify).find("SELECT"), std::string::npos) << migration.name;
  }
}

TEST(Migrate, EachVersionIsReachedFromAnEmptyFileAndVerifies) {
  for (size_t upto = 1; upto <= Migrations().size(); ++upto) {
    TestDirectory directory;
    const std::vector<Migration> migrations(Migrations().begin(), Migrations().begin() + upto);
    absl::StatusOr<OwnedDatabase> database =
        OpenDatabase({.path = directory.File("kiln.db")}, migrations);
    ASSERT_TRUE(database.ok()) << database.status();
    EXPECT_EQ(*database->writer->QueryInteger("PRAGMA user_version"), migrations.back().version);
    EXPECT_EQ(*database->writer->QueryInteger("PRAGMA application_id"), kApplicationId);
    EXPECT_TRUE(Verify(*database->writer, migrations.back()).ok());
    EXPECT_THAT(Backups(directory), ::testing::IsEmpty()) << "there was nothing to back up";
  }
}

TEST(Migrate, AnUpgradeKeepsEverythingAndLeavesABackup) {
  TestDirectory directory;
  const std::string path = directory.File("kiln.db");
  std::string id;
  {
    auto store = OpenSqliteStore({.path = path});
    ASSERT_TRUE(store.ok());
    id = TuneSample(**store, 1).value();
  }
  const std::vector<Migration> next = WithStep(
      "CREATE TABLE extra (x INTEGER) STRICT; INSERT INTO extra SELECT count(*) FROM record",
      "SELECT x = 1 FROM extra;");
  {
    absl::StatusOr<OwnedDatabase> database = OpenDatabase({.path = path}, next);
    ASSERT_TRUE(database.ok()) << database.status();
    EXPECT_EQ(*database->writer->QueryInteger("SELECT count(*) FROM record"), 1);
  }
  EXPECT_EQ(GetErrorInfo(OpenSqliteStore({.path = path}).status()).reason, "DATABASE_NEWER");
  const std::vector<std::string> backups = Backups(directory);
  ASSERT_EQ(backups.size(), 1u);
  auto old = OpenSqliteStore({.path = backups[0]});
  ASSERT_TRUE(old.ok()) << old.status();
  EXPECT_TRUE((*old)->GetRecord(id).ok()) << "the backup is a whole database of the old version";
}

// Version 1 had no answers: they are to be made of all that was published.
TEST(Migrate, AFileOfVersionOneKeepsItsRecordsAndWaitsForAnswers) {
  TestDirectory directory;
  const std::string path = directory.File("kiln.db");
  std::string id;
  {
    auto store = OpenSqliteStore({.path = path});
    ASSERT_TRUE(store.ok());
    id = TuneSample(**store, 1).value();
    const StoredAnswer answer{.question = "q", .record = id, .message = "m"};
    ASSERT_TRUE((*store)->PutAnswers(1, 1, {answer}).ok());
  }
  {
    absl::StatusOr<OwnedDatabase> database = OpenDatabase({.path = path}, Migrations());
    ASSERT_TRUE(database.ok());
    ASSERT_TRUE(database->writer
                    ->Script("DROP TABLE answer; DELETE FROM setting WHERE name <> 'salt';"
                             "PRAGMA user_version = 1")
                    .ok());
  }
  const std::vector<Migration> first(Migrations().begin(), Migrations().begin() + 1);
  {
    absl::StatusOr<OwnedDatabase> database = OpenDatabase({.path = path}, first);
    ASSERT_TRUE(database.ok()) << database.status();
    EXPECT_TRUE(Verify(*database->writer, first[0]).ok()) << "it is one of version 1";
  }
  auto store = OpenSqliteStore({.path = path});
  ASSERT_TRUE(store.ok()) << store.status();
  EXPECT_EQ(Backups(directory).size(), 1u);
  EXPECT_EQ((*(*store)->FindPublished(SampleKey(1), SampleCanonical(1)))->id, id);
  EXPECT_EQ((*store)->Counters()["unanswered"], 1);
  EXPECT_EQ((*store)->ListUnanswered(1, 10)->records.size(), 1u);
}

TEST(Migrate, AnOlderFileIsRefusedWhereUpgradesAreNotAllowed) {
  TestDirectory directory;
  const std::string path = directory.File("kiln.db");
  ASSERT_TRUE(OpenSqliteStore({.path = path}).ok());
  const std::vector<Migration> next = WithStep("CREATE TABLE extra (x INTEGER) STRICT", "");
  const absl::Status status = OpenDatabase({.path = path, .upgrade = false}, next).status();
  EXPECT_EQ(GetErrorInfo(status).reason, "DATABASE_OLDER") << status;
  EXPECT_TRUE(OpenSqliteStore({.path = path}).ok()) << "and is as it was";
  EXPECT_THAT(Backups(directory), ::testing::IsEmpty());
}

TEST(Migrate, AStepThatFailsOrDoesNotVerifyIsUndone) {
  TestDirectory directory;
  const std::string path = directory.File("kiln.db");
  { ASSERT_TRUE(TuneSample(**OpenSqliteStore({.path = path}), 1).ok()); }
  for (const auto& [sql, verify] : std::vector<std::pair<const char*, const char*>>{
           {"CREATE TABLE extra (x INTEGER) STRICT; SELECT no_such_function()", ""},
           {"CREATE TABLE extra (x INTEGER) STRICT",
            "SELECT 1; SELECT count(*) = 1 FROM extra;"}}) {
    const absl::Status status = OpenDatabase({.path = path}, WithStep(sql, verify)).status();
    EXPECT_FALSE(status.ok());
    EXPECT_THAT(std::string(status.message()), ::testing::HasSubstr("999_test"));
    auto store = OpenSqliteStore({.path = path});
    ASSERT_TRUE(store.ok()) << store.status();
    EXPECT_TRUE((*store)->FindPublished(SampleKey(1), SampleCanonical(1))->has_value());
  }
}

TEST(Migrate, RecordsAndPublicationsRefuseChanges) {
  TestDirectory directory;
  const std::string path = directory.File("kiln.db");
  { ASSERT_TRUE(TuneSample(**OpenSqliteStore({.path = path}), 1).ok()); }
  absl::StatusOr<OwnedDatabase> database = OpenDatabase({.path = path}, Migrations());
  ASSERT_TRUE(database.ok());
  for (const char* sql : {"UPDATE record SET device = 'x'", "DELETE FROM record",
                          "UPDATE publication SET salt = 1", "DELETE FROM publication",
                          "DELETE FROM record_samples", "UPDATE record_samples SET samples = ''"}) {
    const absl::Status status = database->writer->Script(sql);
    EXPECT_THAT(std::string(status.message()), ::testing::HasSubstr("append-only")) << sql;
  }
}

// C35: two start on one empty file; the schema is made once, and the loser is told who won.
TEST(Migrate, TwoStartsOnAnEmptyFileMakeOneSchema) {
  TestDirectory directory;
  const std::string path = directory.File("kiln.db");
  std::vector<std::thread> threads;
  std::vector<absl::StatusOr<std::unique_ptr<Store>>> results(8);
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&, i] { results[i] = OpenSqliteStore({.path = path, .owner = "x"}); });
  }
  for (std::thread& thread : threads) thread.join();
  int opened = 0;
  for (const auto& result : results) {
    opened += result.ok();
    if (!result.ok()) {
      EXPECT_EQ(GetErrorInfo(result.status()).reason, "DATABASE_IN_USE") << result.status();
    }
  }
  EXPECT_EQ(opened, 1);
}

}  // namespace
}  // namespace kiln::db
