// SPDX-License-Identifier: Apache-2.0
// C45: kill -9 at random points during commits. A child writes and tells what was acknowledged over
// a pipe; each of those must be there afterwards, whole, and the file sound. KILN_KILL_ROUNDS
// rounds.
#include <gtest/gtest.h>
#include <signal.h>
#include <sqlite3.h>
#include <sys/wait.h>
#include <unistd.h>

#include <map>
#include <random>
#include <thread>

#include "db/sqlite_store.h"
#include "proto/contract/error.h"
#include "tests/db/samples.h"

#ifndef KILN_KILL_ROUNDS
#define KILN_KILL_ROUNDS 100
#endif

namespace kiln::db {
namespace {

// What the child tells of one acknowledged write, in one atomic write to the pipe.
struct Acknowledged {
  int32_t workload;
  char record[20];
};
constexpr int kWriters = 3;

[[noreturn]] void WriteUntilKilled(const std::string& path, int first, int pipe) {
  auto store = OpenSqliteStore({.path = path, .owner = "child"});
  if (!store.ok()) _exit(2);
  std::vector<std::thread> writers;
  for (int w = 0; w < kWriters; ++w) {
    writers.emplace_back([&, w] {
      for (int n = first + w;; n += kWriters) {
        const absl::StatusOr<std::string> id = TuneSample(**store, n, n + 0.5);
        if (!id.ok()) _exit(3);
        Acknowledged told{n, {}};
        id->copy(told.record, sizeof told.record);
        if (write(pipe, &told, sizeof told) != sizeof told) _exit(4);
      }
    });
  }
  for (std::thread& writer : writers) writer.join();
  _exit(5);
}

// Kills a child after it has acknowledged `writes` and a moment more. The ledger grows by what it
// told.
void OneRound(const std::string& path, int first, int writes, int moment_us,
              std::map<int, std::string>* ledger) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    close(ends[0]);
    WriteUntilKilled(path, first, ends[1]);
  }
  close(ends[1]);
  Acknowledged told;
  for (int seen = 0; read(ends[0], &told, sizeof told) == sizeof told;) {
    (*ledger)[told.workload] = std::string(told.record, sizeof told.record);
    if (++seen != writes) continue;
    usleep(moment_us);
    kill(child, SIGKILL);
  }
  close(ends[0]);
  kill(child, SIGKILL);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status)) << "exit " << WEXITSTATUS(status);
}

void ExpectWhole(Store& store, int n, const std::string& id) {
  const absl::StatusOr<std::optional<Record>> found =
      store.FindPublished(SampleKey(n), SampleCanonical(n));
  ASSERT_TRUE(found.ok()) << found.status();
  ASSERT_TRUE(found->has_value()) << "lost " << n;
  EXPECT_EQ((*found)->id, id);
  EXPECT_EQ((*found)->measurement.median_ns, n + 0.5);
}

TEST(Kill, NoAcknowledgedRecordIsLost) {
  TestDirectory directory;
  const std::string path = directory.File("kiln.db");
  std::mt19937 random(45);
  std::map<int, std::string> ledger;
  int first = 0;
  for (int round = 0; round < KILN_KILL_ROUNDS && !HasFatalFailure(); ++round) {
    std::map<int, std::string> told;
    OneRound(path, first, 1 + random() % 12, random() % 3000, &told);
    first += 1000;
    auto store = OpenSqliteStore({.path = path});
    ASSERT_TRUE(store.ok()) << store.status() << " in round " << round;
    for (const auto& [n, id] : told) ExpectWhole(**store, n, id);
    // What was not acknowledged is whole too, or absent: an ended job has its record and the record
    // its publication.
    const PageOf<Job> jobs = (*store)->ListJobs(false, {50, ""}).value();
    for (const Job& job : jobs.items) {
      if (job.state != JobState::kSucceeded) continue;
      EXPECT_TRUE((*store)->GetRecord(job.record).ok());
      EXPECT_TRUE(*(*store)->IsPublished(job.record));
    }
    ledger.merge(told);
  }
  auto store = OpenSqliteStore({.path = path});
  ASSERT_TRUE(store.ok()) << store.status();
  for (const auto& [n, id] : ledger) ExpectWhole(**store, n, id);
  EXPECT_EQ((*store)->Counters()["damaged_reads"], 0);
  EXPECT_GE(ledger.size(), KILN_KILL_ROUNDS);
}

}  // namespace
}  // namespace kiln::db
