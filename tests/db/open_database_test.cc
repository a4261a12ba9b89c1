// SPDX-License-Identifier: Apache-2.0
// What OpenSqliteStore refuses, and that it leaves the file as it was.
#include "db/open_database.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sqlite3.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "db/file_system.h"
#include "proto/contract/error.h"
#include "tests/db/samples.h"

namespace kiln::db {
namespace {

std::string ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void WriteFile(const std::string& path, const std::string& content) {
  std::ofstream(path, std::ios::binary) << content;
}

absl::Status Open(const std::string& path) { return OpenSqliteStore({.path = path}).status(); }

void MakeDatabase(const std::string& path, int records = 1) {
  auto store = OpenSqliteStore({.path = path});
  ASSERT_TRUE(store.ok()) << store.status();
  for (int n = 0; n < records; ++n) ASSERT_TRUE(TuneSample(**store, n).ok());
}

void Shell(const std::string& path, const std::string& sql) {
  sqlite3* db = nullptr;
  ASSERT_EQ(sqlite3_open(path.c_str(), &db), SQLITE_OK);
  char* error = nullptr;
  EXPECT_EQ(sqlite3_exec(db, sql.c_str(), nullptr, nullptr, &error), SQLITE_OK) << error;
  sqlite3_close(db);
}

void ExpectRefused(const std::string& path, const std::string& reason) {
  const std::string before = ReadFile(path);
  const absl::Status status = Open(path);
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_EQ(GetErrorInfo(status).reason, reason) << status;
  EXPECT_THAT(std::string(status.message()), ::testing::HasSubstr(path));
  EXPECT_EQ(ReadFile(path), before) << "touched";
}

TEST(OpenDatabase, RefusesAFileThatIsNoDatabase) {
  TestDirectory directory;
  const std::string path = directory.File("kiln.db");
  for (const std::string& content :
       {std::string("x"), std::string(100000, 'z'), std::string("SQLite format 3\0", 16),
        std::string(4096, '\0')}) {
    WriteFile(path, content);
    ExpectRefused(path, "DATABASE_DAMAGED");
  }
}

TEST(OpenDatabase, RefusesAnotherProgramsDatabase) {
  TestDirectory directory;
  const std::string path = directory.File("kiln.db");
  Shell(path, "CREATE TABLE bookmark (url TEXT); INSERT INTO bookmark VALUES ('x')");
  ExpectRefused(path, "DATABASE_DAMAGED");
  EXPECT_NE(access((path + "-wal").c_str(), F_OK), 0) << "and did not even open it";
}

TEST(OpenDatabase, RefusesATruncatedFile) {
  TestDirectory directory;
  const std::string path = directory.File("kiln.db");
  MakeDatabase(path);
  const std::string whole = ReadFile(path);
  for (size_t size : {whole.size() - 1, whole.size() - 8192, whole.size() / 2, size_t{8192},
                      size_t{200}, size_t{50}}) {
    WriteFile(path, whole.substr(0, size));
    ExpectRefused(path, "DATABASE_DAMAGED");
  }
  WriteFile(path, whole);
  EXPECT_TRUE(Open(path).ok());
}

TEST(OpenDatabase, RefusesANewerSchema) {
  TestDirectory directory;
  const std::string path = directory.File("kiln.db");
  MakeDatabase(path);
  Shell(path, "PRAGMA user_version = 99");
  ExpectRefused(path, "DATABASE_NEWER");
}

TEST(OpenDatabase, RefusesANewerSchemaThatIsStillInTheLog) {
  TestDirectory directory;
  const std::string path = directory.File("kiln.db");
  MakeDatabase(path);
  sqlite3* db = nullptr;
  ASSERT_EQ(sqlite3_open(path.c_str(), &db), SQLITE_OK);
  sqlite3_db_config(db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, nullptr);
  ASSERT_EQ(sqlite3_exec(db, "PRAGMA user_version = 99", nullptr, nullptr, nullptr), SQLITE_OK);
  sqlite3_close(db);
  const std::string log = ReadFile(path + "-wal");
  ASSERT_FALSE(log.empty());
  ExpectRefused(path, "DATABASE_NEWER");
  EXPECT_EQ(ReadFile(path + "-wal"), log);
}

TEST(OpenDatabase, TakesAnEmptyFileAsANewDatabase) {
  TestDirectory directory;
  WriteFile(directory.File("kiln.db"), "");
  EXPECT_TRUE(Open(directory.File("kiln.db")).ok());
}

TEST(OpenDatabase, OpensWithoutTheSharedMemoryFileAndWithACutLog) {
  TestDirectory directory;
  const std::string path = directory.File("kiln.db");
  const std::string copy = directory.File("copy.db");
  {
    auto store = OpenSqliteStore({.path = path});
    ASSERT_TRUE(store.ok());
    ASSERT_TRUE(TuneSample(**store, 1).ok());
    ASSERT_TRUE(TuneSample(**store, 2).ok());
    // As a crash leaves it: the file and the log, nothing else.
    WriteFile(copy, ReadFile(path));
    WriteFile(copy + "-wal", ReadFile(path + "-wal"));
  }
  const std::string file = ReadFile(copy), log = ReadFile(copy + "-wal");
  ASSERT_FALSE(log.empty());
  size_t most = 0;
  for (size_t part = 0; part <= 16; ++part) {
    WriteFile(copy, file);
    WriteFile(copy + "-wal", log.substr(0, log.size() * part / 16));
    std::filesystem::remove(copy + "-shm");
    auto store = OpenSqliteStore({.path = copy});
    ASSERT_TRUE(store.ok()) << store.status() << " at " << part;
    const PageOf<Record> records = (*store)->ListRecords({}, {}).value();
    EXPECT_GE(records.items.size(), most) << "a longer log holds no less";
    most = records.items.size();
    for (const Record& record : records.items) {
      EXPECT_TRUE((*store)->FindPublished(record.key, record.canonical)->has_value());
    }
  }
  EXPECT_EQ(most, 2u);
}

TEST(OpenDatabase, RefusesAMissingDirectoryAndAnythingThatIsNoFile) {
  TestDirectory directory;
  const absl::Status missing = Open(directory.File("no/such/kiln.db"));
  EXPECT_EQ(GetErrorInfo(missing).reason, "DIRECTORY_MISSING") << missing;
  EXPECT_FALSE(std::filesystem::exists(directory.File("no")));
  EXPECT_EQ(GetErrorInfo(Open(directory.path())).reason, "DATABASE_DAMAGED");
}

// Runs `body` without the rights of root, in a child; its result is the exit status.
int AsNobody(const std::function<int()>& body) {
  const pid_t child = fork();
  if (child == 0) {
    if (geteuid() == 0 && (setgid(65534) != 0 || setuid(65534) != 0)) _exit(100);
    _exit(body());
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 101;
}

int IsReadOnlyRefusal(const std::string& path) {
  const absl::Status status = Open(path);
  return absl::IsFailedPrecondition(status) && GetErrorInfo(status).reason == "DATABASE_READ_ONLY"
             ? 0
             : 1;
}

// C46: no fallback to memory, no change.
TEST(OpenDatabase, RefusesAReadOnlyDirectory) {
  TestDirectory directory;
  ASSERT_EQ(chmod(directory.path().c_str(), 0555), 0);
  EXPECT_EQ(AsNobody([&] { return IsReadOnlyRefusal(directory.File("kiln.db")); }), 0);
  ASSERT_EQ(chmod(directory.path().c_str(), 0755), 0);
  EXPECT_TRUE(std::filesystem::is_empty(directory.path()));
}

TEST(OpenDatabase, RefusesAReadOnlyFile) {
  TestDirectory directory;
  const std::string path = directory.File("kiln.db");
  MakeDatabase(path);
  ASSERT_EQ(chmod(directory.path().c_str(), 0777), 0);
  ASSERT_EQ(chmod(path.c_str(), 0444), 0);
  const std::string before = ReadFile(path);
  EXPECT_EQ(AsNobody([&] { return IsReadOnlyRefusal(path); }), 0);
  EXPECT_EQ(ReadFile(path), before);
}

TEST(OpenDatabase, RefusesAReadOnlyMount) {
  TestDirectory directory;
  if (mount("none", directory.path().c_str(), "tmpfs", 0, "size=1m") != 0) {
    GTEST_SKIP() << "mount: " << strerror(errno);
  }
  EXPECT_EQ(mount("none", directory.path().c_str(), "tmpfs", MS_REMOUNT | MS_RDONLY, nullptr), 0);
  EXPECT_EQ(IsReadOnlyRefusal(directory.File("kiln.db")), 0);
  umount(directory.path().c_str());
}

// C33.
TEST(OpenDatabase, KnowsNetworkFileSystems) {
  EXPECT_EQ(NetworkFileSystem(0x6969), "NFS");
  EXPECT_EQ(NetworkFileSystem(0x0bd00bd0), "Lustre");
  EXPECT_EQ(NetworkFileSystem(static_cast<int32_t>(0xff534d42)), "CIFS") << "sign-extended";
  EXPECT_EQ(NetworkFileSystem(0x65735546), "FUSE");
  for (int64_t local : {0xef53, 0x01021994, 0x58465342, 0x794c7630}) {  // ext4, tmpfs, XFS, overlay
    EXPECT_EQ(NetworkFileSystem(local), "") << local;
  }
}

// A full disk, for real where the test may mount one.
TEST(OpenDatabase, AFullDiskIsUnavailableAndRecovers) {
  TestDirectory directory;
  if (mount("none", directory.path().c_str(), "tmpfs", 0, "size=2m") != 0) {
    GTEST_SKIP() << "mount: " << strerror(errno);
  }
  const std::string path = directory.File("kiln.db");
  const std::string ballast = directory.File("ballast");
  WriteFile(ballast, std::string(4 << 20, 'x'));
  const absl::Status full = Open(path);
  EXPECT_TRUE(absl::IsUnavailable(full)) << full;
  EXPECT_EQ(GetErrorInfo(full).reason, "DISK_FULL") << full;
  std::filesystem::remove(ballast);
  {
    auto store = OpenSqliteStore({.path = path});
    ASSERT_TRUE(store.ok()) << store.status();
    ASSERT_TRUE(TuneSample(**store, 1).ok());
    WriteFile(ballast, std::string(4 << 20, 'x'));
    const absl::Status refused = (*store)->ImportRecords(std::vector<Record>(400, SampleRecord(2)));
    EXPECT_TRUE(absl::IsUnavailable(refused)) << refused;
    EXPECT_EQ(GetErrorInfo(refused).reason, "DISK_FULL") << refused;
    EXPECT_FALSE((*store)->FindPublished(SampleKey(2), SampleCanonical(2))->has_value());
    EXPECT_TRUE((*store)->FindPublished(SampleKey(1), SampleCanonical(1))->has_value());
    EXPECT_GT((*store)->Counters()["write_failures"], 0);
    std::filesystem::remove(ballast);
    EXPECT_TRUE(TuneSample(**store, 3).ok()) << "space is back";
  }
  EXPECT_TRUE(Open(path).ok());
  umount(directory.path().c_str());
}

}  // namespace
}  // namespace kiln::db
