// SPDX-License-Identifier: Apache-2.0
// Merging and exporting (cases C41, C42 and, of C46, a file that is only read).
#include "db/merge.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sqlite3.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "proto/contract/error.h"
#include "tests/db/samples.h"

namespace kiln::db {
namespace {

std::string ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

class MergeTest : public ::testing::Test {
 protected:
  std::string File(const std::string& name) { return directory_.File(name); }
  // A database with these records, each the winner of its key; with the artifacts that they name.
  void Make(const std::string& name, const std::vector<Record>& records) {
    auto store = OpenSqliteStore({.path = File(name)});
    ASSERT_TRUE(store.ok()) << store.status();
    ASSERT_TRUE(PutSampleArtifacts(**store).ok());
    ASSERT_TRUE((*store)->ImportRecords(records).ok());
  }
  MergeReport MustMerge(const std::string& into, const std::string& from, bool dry_run = false) {
    const absl::StatusOr<MergeReport> report =
        MergeDatabase({.path = File(into)}, File(from), dry_run);
    EXPECT_TRUE(report.ok()) << report.status();
    return report.value_or(MergeReport());
  }
  std::optional<Record> Find(const std::string& name, const Record& asked) {
    auto store = OpenSqliteStore({.path = File(name)});
    EXPECT_TRUE(store.ok()) << store.status();
    absl::StatusOr<std::optional<Record>> found =
        (*store)->FindPublished(asked.key, asked.canonical);
    EXPECT_TRUE(found.ok()) << found.status();
    return found.ok() ? *found : std::nullopt;
  }
  void Copy(const std::string& from, const std::string& to) {
    std::filesystem::copy_file(File(from), File(to),
                               std::filesystem::copy_options::overwrite_existing);
  }

  TestDirectory directory_;
};

Record Measured(double median_ns, double half_interval = 1) {
  Record record = SampleRecord(1, median_ns);
  record.measurement.ci95_lo_ns = median_ns - half_interval;
  record.measurement.ci95_hi_ns = median_ns + half_interval;
  record.budget_exhausted = false;
  return record;
}

// C41: what a record says of its device, its tools and its moment goes with it, over a merge and an
// export, and an import again adds nothing.
TEST_F(MergeTest, ProvenanceIsKeptAndNothingIsRelabelled) {
  Record foreign = SampleRecord(1);
  foreign.device = SampleDevice(16);
  foreign.key.device = DeviceId(foreign.device);
  foreign.kiln_version = "0.0.9";
  foreign.toolchain = "clang 19 -O2";
  Make("x.db", {foreign});
  Make("y.db", {SampleRecord(2)});
  const std::optional<Record> original = Find("x.db", foreign);
  ASSERT_TRUE(original);

  const MergeReport report = MustMerge("y.db", "x.db");
  EXPECT_EQ(report.records, 1);
  EXPECT_EQ(report.published, 1);
  EXPECT_EQ(report.artifacts, 0) << "both had them";
  EXPECT_THAT(report.conflicts, ::testing::IsEmpty());
  ASSERT_TRUE(ExportDatabase({.path = File("y.db")}, File("shipped.db")).ok());
  for (const char* name : {"y.db", "shipped.db"}) {
    const std::optional<Record> found = Find(name, foreign);
    ASSERT_TRUE(found) << name;
    EXPECT_EQ(Describe(*found), Describe(*original));
    EXPECT_EQ(found->id, original->id);
    EXPECT_EQ(found->created, original->created);
    // The asker's device decides: the same workload on this server's device is still a miss.
    Record here = foreign;
    here.key.device = SampleKey(1).device;
    EXPECT_FALSE(Find(name, here)) << name;
  }
  const MergeReport again = MustMerge("y.db", "shipped.db");
  EXPECT_EQ(again.records, 0);
  EXPECT_EQ(again.known, 2);
  EXPECT_THAT(again.conflicts, ::testing::IsEmpty());
}

// C42: two winners of one key. In either order the same one answers, and a dry run says which.
TEST_F(MergeTest, OneOfTwoWinnersIsChosenInEitherOrderTheSame) {
  struct Case {
    const char* why;
    Record wins, loses;
  };
  Record newer_method = Measured(2000), finer = Measured(2000), whole = Measured(1000, 50);
  newer_method.measurement.method_version = 9;
  finer.measurement.timer = Timer::kCupti;
  Record by_budget = Measured(990, 50);
  by_budget.budget_exhausted = true;
  Record other_text = Measured(1000);
  for (const Case& c : std::vector<Case>{{"faster", Measured(900), Measured(1000)},
                                         {"newer method", newer_method, Measured(1000)},
                                         {"finer timer", finer, Measured(1000)},
                                         {"whole search", whole, by_budget},
                                         {"newer", Measured(1001), Measured(1000)}}) {
    for (const char* name : {"a.db", "b.db", "ab.db", "ba.db"}) std::filesystem::remove(File(name));
    Make("a.db", {c.loses});
    Make("b.db", {c.wins});  // made later
    Copy("a.db", "ab.db");
    Copy("b.db", "ba.db");
    const MergeReport dry = MustMerge("ab.db", "b.db", /*dry_run=*/true);
    ASSERT_EQ(dry.conflicts.size(), 1u) << c.why;
    EXPECT_TRUE(dry.conflicts[0].replaced) << c.why;
    EXPECT_EQ(dry.conflicts[0].why, c.why);
    EXPECT_EQ(ReadFile(File("ab.db")), ReadFile(File("a.db"))) << "a dry run writes nothing";

    EXPECT_TRUE(MustMerge("ab.db", "b.db").conflicts[0].replaced) << c.why;
    EXPECT_FALSE(MustMerge("ba.db", "a.db").conflicts[0].replaced) << c.why;
    const std::optional<Record> ab = Find("ab.db", c.wins), ba = Find("ba.db", c.wins);
    ASSERT_TRUE(ab && ba) << c.why;
    EXPECT_EQ(ab->measurement.median_ns, c.wins.measurement.median_ns) << c.why;
    EXPECT_EQ(Describe(*ab), Describe(*ba)) << c.why;
    // Both records are kept in both.
    EXPECT_EQ((*OpenSqliteStore({.path = File("ab.db")}))->Counters()["records"], 2);
    EXPECT_EQ((*OpenSqliteStore({.path = File("ba.db")}))->Counters()["records"], 2);
    const MergeReport again = MustMerge("ab.db", "b.db");
    EXPECT_EQ(again.records, 0) << "and once more changes nothing";
    EXPECT_THAT(again.conflicts, ::testing::IsEmpty()) << c.why;
  }
}

TEST_F(MergeTest, PreferenceIsNeverMutual) {
  std::vector<Record> records;
  for (double median_ns : {900.0, 1000.0, 1001.0}) {
    for (int method : {1, 2}) {
      for (bool exhausted : {false, true}) {
        for (Timer timer : {Timer::kEvents, Timer::kClock}) {
          Record record = Measured(median_ns, 5);
          record.measurement.method_version = method;
          record.measurement.timer = timer;
          record.budget_exhausted = exhausted;
          record.id = absl::StrCat("rec-", records.size());
          records.push_back(record);
        }
      }
    }
  }
  std::string why;
  for (const Record& a : records) {
    for (const Record& b : records) {
      if (a.id == b.id) continue;
      EXPECT_NE(Preferred(a, b, &why), Preferred(b, a, &why)) << a.id << " " << b.id << " " << why;
    }
  }
}

TEST_F(MergeTest, DamagedRowsAreLeftOutAndOwnedFilesRefused) {
  Make("a.db", {SampleRecord(1), SampleRecord(2)});
  {
    sqlite3* db = nullptr;
    ASSERT_EQ(sqlite3_open(File("a.db").c_str(), &db), SQLITE_OK);
    EXPECT_EQ(sqlite3_exec(db,
                           "DROP TRIGGER record_update; UPDATE record SET plan = 'garbage' WHERE "
                           "id = (SELECT min(id) FROM record)",
                           nullptr, nullptr, nullptr),
              SQLITE_OK);
    sqlite3_close(db);
  }
  const MergeReport report = MustMerge("new.db", "a.db");
  EXPECT_EQ(report.records, 1);
  EXPECT_EQ(report.damaged, 2) << "the record, and the publication that names it";
  EXPECT_FALSE(Find("new.db", SampleRecord(1)));
  EXPECT_TRUE(Find("new.db", SampleRecord(2)));

  auto owner = OpenSqliteStore({.path = File("a.db"), .owner = "somebody"});
  ASSERT_TRUE(owner.ok());
  for (const auto& [into, from] : {std::pair("new.db", "a.db"), std::pair("a.db", "new.db")}) {
    EXPECT_EQ(GetErrorInfo(MergeDatabase({.path = File(into)}, File(from), false).status()).reason,
              "DATABASE_IN_USE");
  }
}

// C46: a shipped file, where nothing can be written.
TEST_F(MergeTest, AnExportIsReadWhereNothingCanBeWritten) {
  Make("a.db", {SampleRecord(1)});
  ASSERT_TRUE(ExportDatabase({.path = File("a.db")}, File("shipped.db")).ok());
  EXPECT_TRUE(absl::IsAlreadyExists(ExportDatabase({.path = File("a.db")}, File("shipped.db"))));
  for (const char* name : {"shipped.db", "a.db"}) {  // one of them was in WAL mode
    TestDirectory image;
    const std::string path = image.File("kiln?#%.db");
    std::filesystem::copy_file(File(name), path);
    ASSERT_EQ(chmod(path.c_str(), 0444), 0);
    ASSERT_EQ(chmod(image.path().c_str(), 0555), 0);
    {
      auto store = OpenSqliteStore({.path = path, .read_only = true});
      ASSERT_TRUE(store.ok()) << store.status();
      const auto found = (*store)->FindPublished(SampleKey(1), SampleCanonical(1));
      ASSERT_TRUE(found.ok()) << found.status();
      EXPECT_TRUE(found->has_value());
      EXPECT_TRUE((*store)->GetArtifact(SampleArtifact("code").digest).ok());
      Operation operation;
      const absl::Status refused = (*store)->CreateJob(SampleJob(2), &operation).status();
      EXPECT_TRUE(absl::IsFailedPrecondition(refused)) << refused;
      EXPECT_EQ(GetErrorInfo(refused).reason, "DATABASE_READ_ONLY");
      EXPECT_TRUE(absl::IsFailedPrecondition((*store)->ImportRecords({SampleRecord(3)})));
      auto second = OpenSqliteStore({.path = path, .read_only = true});
      EXPECT_TRUE(second.ok()) << "many may read: " << second.status();
    }
    int files = 0;
    for (const auto& entry : std::filesystem::directory_iterator(image.path())) {
      files += entry.exists();
    }
    EXPECT_EQ(files, 1) << "nothing was made beside it";
    ASSERT_EQ(chmod(image.path().c_str(), 0755), 0);
    EXPECT_EQ(ReadFile(path), ReadFile(File(name)));
  }
}

TEST_F(MergeTest, AReadOnlyFileIsRefusedWhereItWouldNotBeSeenWhole) {
  auto reason = [&](const char* name) {
    return GetErrorInfo(OpenSqliteStore({.path = File(name), .read_only = true}).status()).reason;
  };
  EXPECT_EQ(reason("none.db"), "DATABASE_MISSING");
  Make("a.db", {SampleRecord(1)});
  std::ofstream(File("a.db-wal")) << "changes";
  EXPECT_EQ(reason("a.db"), "DATABASE_HAS_LOG");
  std::filesystem::remove(File("a.db-wal"));
  {
    auto owner = OpenSqliteStore({.path = File("a.db")});
    ASSERT_TRUE(owner.ok());
    EXPECT_EQ(reason("a.db"), "DATABASE_IN_USE");
  }
  {
    auto reader = OpenSqliteStore({.path = File("a.db"), .read_only = true});
    ASSERT_TRUE(reader.ok()) << reader.status();
    EXPECT_EQ(GetErrorInfo(OpenSqliteStore({.path = File("a.db")}).status()).reason,
              "DATABASE_IN_USE")
        << "nobody may write what is read without locks";
  }
  std::ofstream(File("empty.db")) << "";
  EXPECT_EQ(reason("empty.db"), "DATABASE_OLDER");
}

}  // namespace
}  // namespace kiln::db
