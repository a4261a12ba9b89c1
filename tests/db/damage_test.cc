// SPDX-License-Identifier: Apache-2.0
// Damaged rows and pages: a miss, reported, never an answer for another key, never a crash.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sqlite3.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <random>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "db/sqlite_store.h"
#include "proto/contract/error.h"
#include "tests/db/samples.h"

namespace kiln::db {
namespace {

class Damage : public ::testing::Test {
 protected:
  Damage() : path_(directory_.File("kiln.db")) {}

  std::unique_ptr<Store> Open() {
    absl::StatusOr<std::unique_ptr<Store>> store = OpenSqliteStore({.path = path_});
    EXPECT_TRUE(store.ok()) << store.status();
    return store.ok() ? *std::move(store) : nullptr;
  }
  void Shell(const std::string& sql) {
    sqlite3* db = nullptr;
    ASSERT_EQ(sqlite3_open(path_.c_str(), &db), SQLITE_OK);
    char* error = nullptr;
    EXPECT_EQ(sqlite3_exec(db, sql.c_str(), nullptr, nullptr, &error), SQLITE_OK) << error;
    sqlite3_close(db);
  }
  // What a disk would do, and no trigger forbids.
  void Corrupt(const std::string& update) {
    Shell(
        "DROP TRIGGER record_update; DROP TRIGGER publication_update; DROP TRIGGER "
        "samples_update;" +
        update);
  }
  static bool Answers(Store& store, int n) {
    absl::StatusOr<std::optional<Record>> found =
        store.FindPublished(SampleKey(n), SampleCanonical(n));
    EXPECT_TRUE(found.ok()) << found.status();
    return found.ok() && found->has_value();
  }
  static void WaitForQuarantine(Store& store, const std::string& path, int rows) {
    const absl::Time deadline = absl::Now() + absl::Seconds(20);
    int64_t stored = -1;
    while (stored != rows && absl::Now() < deadline) {
      sqlite3* db = nullptr;
      sqlite3_open_v2(path.c_str(), &db, SQLITE_OPEN_READONLY, nullptr);
      sqlite3_stmt* statement = nullptr;
      sqlite3_prepare_v2(db, "SELECT count(*) FROM quarantine WHERE healed IS NULL", -1, &statement,
                         nullptr);
      stored = sqlite3_step(statement) == SQLITE_ROW ? sqlite3_column_int64(statement, 0) : -1;
      sqlite3_finalize(statement);
      sqlite3_close(db);
      absl::SleepFor(absl::Milliseconds(5));
    }
    EXPECT_EQ(stored, rows);
    EXPECT_EQ(store.Counters()["quarantined"], rows);
  }

  TestDirectory directory_;
  const std::string path_;
};

TEST_F(Damage, AnyChangedColumnOfARecordIsAMiss) {
  std::string id;
  { id = TuneSample(*Open(), 1).value(); }
  const std::string pristine = directory_.File("pristine");
  std::filesystem::copy_file(path_, pristine);
  for (const char* change :
       {"signature = 'x'", "canonical = canonical || ' '", "device = 'cpu-0000000000000000'",
        "objective = 'cold,burst'", "salt = 1", "schedule = replace(schedule, '256', '257')",
        "plan = replace(plan, '65536', '65537')", "plan = substr(plan, 2)", "artifacts = '[]'",
        "spec = '{}'", "evidence = replace(evidence, '1000.25', '1000.26')", "created = 7",
        "checksum = checksum + 1"}) {
    std::filesystem::copy_file(pristine, path_, std::filesystem::copy_options::overwrite_existing);
    Corrupt(absl::StrCat("UPDATE record SET ", change));
    auto store = Open();
    EXPECT_FALSE(Answers(*store, 1)) << change;
    EXPECT_TRUE(absl::IsDataLoss(store->GetRecord(id).status())) << change;
    EXPECT_THAT(store->ListRecords({}, {})->items, ::testing::IsEmpty()) << change;
    EXPECT_EQ(store->Counters()["quarantined"], 1) << change;
    EXPECT_GE(store->Counters()["damaged_reads"], 3) << change;
  }
}

TEST_F(Damage, ADamagedRowIsRememberedKeptAndReplacedByTheNextTuning) {
  std::string id;
  { id = TuneSample(*Open(), 1).value(); }
  Corrupt("UPDATE record SET plan = 'garbage'");
  {
    auto store = Open();
    EXPECT_FALSE(Answers(*store, 1));
    WaitForQuarantine(*store, path_, 1);
  }
  auto store = Open();
  EXPECT_EQ(store->Counters()["quarantined"], 1) << "after a restart too";
  const absl::StatusOr<std::string> next = TuneSample(*store, 1);
  ASSERT_TRUE(next.ok()) << next.status();
  EXPECT_TRUE(Answers(*store, 1));
  const absl::Status lost = store->GetRecord(id).status();
  EXPECT_TRUE(absl::IsDataLoss(lost)) << "nothing is deleted";
  EXPECT_EQ(GetErrorInfo(lost).reason, "ROW_DAMAGED");
}

TEST_F(Damage, APublicationThatPointsElsewhereIsAMiss) {
  std::string first, second;
  {
    auto store = Open();
    first = TuneSample(*store, 1, 10).value();
    ASSERT_TRUE(TuneSample(*store, 1, 20).ok());
    ASSERT_TRUE(TuneSample(*store, 2).ok());
  }
  // To an older record of the same key, to another key's, to none at all.
  const std::string pristine = directory_.File("pristine");
  std::filesystem::copy_file(path_, pristine);
  for (const char* record :
       {"(SELECT min(record) FROM publication)", "(SELECT max(record) FROM publication)", "77"}) {
    std::filesystem::copy_file(pristine, path_, std::filesystem::copy_options::overwrite_existing);
    Corrupt(absl::StrCat("UPDATE publication SET record = ", record, " WHERE id = 2"));
    auto store = Open();
    EXPECT_FALSE(Answers(*store, 1)) << record;
    EXPECT_TRUE(Answers(*store, 2)) << record;
  }
}

TEST_F(Damage, SwappedRecordsAnswerNoKey) {
  {
    auto store = Open();
    ASSERT_TRUE(TuneSample(*store, 1).ok());
    ASSERT_TRUE(TuneSample(*store, 2).ok());
    ASSERT_TRUE(TuneSample(*store, 3).ok());
  }
  Corrupt(
      "CREATE TEMP TABLE t AS SELECT min(id) a, max(id) b FROM record;"
      "PRAGMA foreign_keys = OFF; UPDATE record SET id = 1 WHERE id = (SELECT a FROM t);"
      "UPDATE record SET id = (SELECT a FROM t) WHERE id = (SELECT b FROM t);"
      "UPDATE record SET id = (SELECT b FROM t) WHERE id = 1");
  auto store = Open();
  EXPECT_FALSE(Answers(*store, 1));
  EXPECT_TRUE(Answers(*store, 2));
  EXPECT_FALSE(Answers(*store, 3));
}

TEST_F(Damage, AnyChangedColumnOfAnAnswerIsNoAnswerAndTheRecordStands) {
  const std::string question = "what is asked";
  {
    auto store = Open();
    const std::string id = TuneSample(*store, 1).value();
    ASSERT_TRUE(
        store->PutAnswers(1, 1, {{.question = question, .record = id, .message = "sent"}}).ok());
  }
  const std::string pristine = directory_.File("pristine");
  std::filesystem::copy_file(path_, pristine);
  for (const char* change :
       {"question = CAST(question || x'00' AS BLOB)", "signature = 'x'", "toolchain = 'x'",
        "emitter = 'x'", "method_version = 1", "message = CAST('sen' AS BLOB)",
        "checksum = checksum + 1", "hash = hash + 1"}) {
    std::filesystem::copy_file(pristine, path_, std::filesystem::copy_options::overwrite_existing);
    Shell(absl::StrCat("UPDATE answer SET ", change));
    auto store = Open();
    const auto found = store->FindAnswer(question);
    ASSERT_TRUE(found.ok()) << found.status();
    EXPECT_FALSE(found->has_value()) << change;
    EXPECT_TRUE(Answers(*store, 1)) << change;
  }
  std::filesystem::copy_file(pristine, path_, std::filesystem::copy_options::overwrite_existing);
  EXPECT_EQ((*Open()->FindAnswer(question))->message, "sent");
}

TEST_F(Damage, AnAnswerWhoseArtifactIsDamagedIsNotGiven) {
  auto store = Open();
  const std::string id = TuneSample(*store, 1).value();
  ASSERT_TRUE(store->PutAnswers(1, 1, {{.question = "q", .record = id, .message = "m"}}).ok());
  const std::string digest = SampleArtifact("code").digest;
  Shell("UPDATE artifact SET zstd = CAST(x'00' || zstd AS BLOB) WHERE digest = '" + digest + "'");
  EXPECT_TRUE(absl::IsDataLoss(store->GetArtifact(digest).status()));
  EXPECT_FALSE(store->FindAnswer("q")->has_value());
  ASSERT_TRUE(store->PutArtifact(SampleArtifact("code")).ok());
  EXPECT_TRUE(store->FindAnswer("q")->has_value());
}

TEST_F(Damage, DamagedSamplesSpareTheLookup) {
  std::string id;
  { id = TuneSample(*Open(), 1).value(); }
  Corrupt("UPDATE record_samples SET samples = '[1]'");
  auto store = Open();
  EXPECT_TRUE(Answers(*store, 1));
  EXPECT_TRUE(absl::IsDataLoss(store->GetRecord(id).status()));
}

TEST_F(Damage, ADamagedArtifactIsNotServedAndStoringItAgainHealsIt) {
  const std::string digest = SampleArtifact("code").digest;
  { ASSERT_TRUE(TuneSample(*Open(), 1).ok()); }
  Shell("UPDATE artifact SET zstd = CAST(x'00' || zstd AS BLOB) WHERE digest = '" + digest + "'");
  auto store = Open();
  EXPECT_TRUE(absl::IsDataLoss(store->GetArtifact(digest).status()));
  EXPECT_FALSE(*store->HasArtifact(digest));
  EXPECT_FALSE(Answers(*store, 1)) << "a record without its artifact";
  WaitForQuarantine(*store, path_, 1);
  ASSERT_TRUE(store->PutArtifact(SampleArtifact("code")).ok());
  EXPECT_EQ(store->GetArtifact(digest)->bytes, "code");
  EXPECT_TRUE(Answers(*store, 1));
  WaitForQuarantine(*store, path_, 0);
}

TEST_F(Damage, ADamagedJobDoesNotBlockItsKey) {
  std::string name;
  {
    Operation operation;
    name = Open()->CreateJob(SampleJob(1), &operation)->name;
  }
  Shell("UPDATE job SET condition = replace(condition, '123', '124')");
  auto store = Open();
  EXPECT_TRUE(absl::IsDataLoss(store->GetJob(name).status()));
  EXPECT_FALSE(store->FindLiveJob(SampleKey(1))->has_value());
  EXPECT_THAT(store->ListJobs(true, {})->items, ::testing::IsEmpty());
  Operation operation;
  const absl::StatusOr<Job> next = store->CreateJob(SampleJob(1), &operation);
  ASSERT_TRUE(next.ok()) << next.status();
  EXPECT_EQ((*store->FindLiveJob(SampleKey(1)))->name, next->name);
}

TEST_F(Damage, ADamagedWorkloadTextIsReplacedByTheRightOne) {
  { ASSERT_TRUE(TuneSample(*Open(), 1).ok()); }
  Shell("UPDATE workload SET canonical = 'operator (x'");
  auto store = Open();
  EXPECT_TRUE(Answers(*store, 1)) << "a record says itself what it answers";
  EXPECT_TRUE(TuneSample(*store, 1).ok());
  Job wrong = SampleJob(1);
  wrong.canonical = "operator (x";
  Operation operation;
  EXPECT_TRUE(absl::IsInvalidArgument(store->CreateJob(wrong, &operation).status()));
}

TEST_F(Damage, DamagedOutcomesAreLeftOut) {
  {
    auto store = Open();
    Operation operation;
    const Job job = store->CreateJob(SampleJob(1), &operation).value();
    ASSERT_TRUE(store->AddOutcomes(job.name, 1, {SampleOutcome(0), SampleOutcome(1)}).ok());
  }
  Shell("UPDATE outcome SET schedule = 'contraction/1 kc=1' WHERE sequence = 0");
  auto store = Open();
  const std::vector<Outcome> outcomes = store->ListOutcomes(SampleKey(1), 10).value();
  ASSERT_EQ(outcomes.size(), 1u);
  EXPECT_EQ(outcomes[0].sequence, 1);
}

// Bits flipped anywhere in the file: it is refused and left alone, or it opens and each key has its
// own answer or none.
TEST_F(Damage, FlippedBitsNeverGiveAWrongAnswer) {
  constexpr int kRecords = 40;
  std::map<int, std::string> want;
  {
    auto store = Open();
    for (int n = 0; n < kRecords; ++n) ASSERT_TRUE(TuneSample(*store, n, n + 0.5).ok());
    for (int n = 0; n < kRecords; ++n) {
      want[n] = Describe(**store->FindPublished(SampleKey(n), SampleCanonical(n)));
    }
  }
  std::ifstream file(path_, std::ios::binary);
  const std::string pristine{std::istreambuf_iterator<char>(file), {}};
  std::mt19937 random(2026);
  int refused = 0, misses = 0;
  for (int round = 0; round < 60; ++round) {
    std::string damaged = pristine;
    for (int flips = 1 + round % 8; flips > 0; --flips) {
      damaged[random() % damaged.size()] ^= static_cast<char>(1 << (random() % 8));
    }
    std::ofstream(path_, std::ios::binary) << damaged;
    absl::StatusOr<std::unique_ptr<Store>> store = OpenSqliteStore({.path = path_});
    if (!store.ok()) {
      ++refused;
      EXPECT_TRUE(absl::IsFailedPrecondition(store.status())) << store.status();
      std::ifstream again(path_, std::ios::binary);
      EXPECT_EQ(std::string(std::istreambuf_iterator<char>(again), {}), damaged) << "touched";
      continue;
    }
    for (int n = 0; n < kRecords; ++n) {
      const auto found = (*store)->FindPublished(SampleKey(n), SampleCanonical(n));
      ASSERT_TRUE(found.ok()) << found.status();
      if (found->has_value()) {
        EXPECT_EQ(Describe(**found), want[n]);
      } else {
        ++misses;
      }
    }
    std::filesystem::remove(path_ + "-wal");
  }
  EXPECT_GT(refused + misses, 0);
}

}  // namespace
}  // namespace kiln::db
