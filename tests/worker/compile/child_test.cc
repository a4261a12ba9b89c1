// SPDX-License-Identifier: Apache-2.0
#include "worker/compile/child.h"

#include <sys/resource.h>
#include <sys/wait.h>

#include <thread>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/worker/processes.h"
#include "worker/compile/temp_root.h"

namespace kiln::worker {
namespace {

ChildOptions Shell(const std::string& script, const std::string& mark) {
  return {.supervisor = OwnBinary(), .command = {"env", "KILN_MARK=" + mark, "sh", "-c", script}};
}

TEST(Child, ReportsHowItEnded) {
  ScratchFolder folder;
  auto done = Child::Start(Shell("exit 7", folder.path()));
  ASSERT_TRUE(done.ok()) << done.status();
  ChildEnd end = (*done)->Wait(nullptr);
  EXPECT_EQ(end.kind, ChildEnd::kExited);
  EXPECT_EQ(end.code, 7);
  EXPECT_EQ(Print(end), "exited with 7");

  auto crashed = Child::Start(Shell("kill -SEGV $$", folder.path()));
  ASSERT_TRUE(crashed.ok());
  end = (*crashed)->Wait(nullptr);
  EXPECT_EQ(end.kind, ChildEnd::kSignalled);
  EXPECT_EQ(end.code, SIGSEGV);
}

TEST(Child, ACommandThatCannotBeRunSaysSoInTheLog) {
  ScratchFolder folder;
  ChildOptions options{.supervisor = OwnBinary(),
                       .command = {"no-such-command-of-kiln"},
                       .log = folder.path() + "/log"};
  auto child = Child::Start(options);
  ASSERT_TRUE(child.ok());
  EXPECT_EQ((*child)->Wait(nullptr).code, 127);
  EXPECT_THAT(*LoadFile(options.log, 1000),
              testing::HasSubstr("cannot run no-such-command-of-kiln"));
}

TEST(Child, AMissingSupervisorIsAnError) {
  EXPECT_EQ(Child::Start({.supervisor = "/no/such/worker", .command = {"true"}}).status().code(),
            absl::StatusCode::kNotFound);
  EXPECT_EQ(Child::Start({.supervisor = "/bin/true", .command = {"true"}}).status().code(),
            absl::StatusCode::kUnavailable);
}

TEST(Child, PipesCarryItsInputAndOutput) {
  ScratchFolder folder;
  ChildOptions options = Shell("read line; echo \"got $line\"", folder.path());
  options.pipes = true;
  auto child = Child::Start(options);
  ASSERT_TRUE(child.ok());
  ASSERT_EQ(write((*child)->input(), "word\n", 5), 5);
  std::string text;
  EXPECT_TRUE(Eventually([&] {
    char bytes[64];
    const ssize_t got = read((*child)->output(), bytes, sizeof bytes);
    if (got > 0) text.append(bytes, got);
    return text == "got word\n";
  })) << text;
  EXPECT_TRUE((*child)->Wait(nullptr).ok());
}

TEST(Child, TheTimeLimitKillsTheWholeTree) {
  ScratchFolder folder;
  ChildOptions options = Shell("sleep 1000 & setsid sleep 1000 & sleep 1000", folder.path());
  options.limit = absl::Milliseconds(300);
  auto child = Child::Start(options);
  ASSERT_TRUE(child.ok());
  EXPECT_EQ((*child)->Wait(nullptr).kind, ChildEnd::kTimedOut);
  EXPECT_THAT(ProcessesThatMention(folder.path()), testing::IsEmpty());
}

TEST(Child, WhatItLeavesInTheBackgroundDiesWithIt) {
  ScratchFolder folder;
  auto child = Child::Start(Shell("sleep 1000 & setsid sleep 1000 & exit 0", folder.path()));
  ASSERT_TRUE(child.ok());
  EXPECT_TRUE((*child)->Wait(nullptr).ok());
  EXPECT_THAT(ProcessesThatMention(folder.path()), testing::IsEmpty());
}

TEST(Child, ACancelFromAnotherThreadEndsTheWait) {
  ScratchFolder folder;
  auto child = Child::Start(Shell("sleep 1000", folder.path()));
  ASSERT_TRUE(child.ok());
  CancelToken cancel;
  std::thread other([&] { cancel.Cancel(); });
  EXPECT_EQ((*child)->Wait(&cancel).kind, ChildEnd::kKilled);
  other.join();
  EXPECT_THAT(ProcessesThatMention(folder.path()), testing::IsEmpty());
}

TEST(Child, ASupervisorThatIsKilledTakesTheGroupWithIt) {
  ScratchFolder folder;
  auto child = Child::Start(Shell("sleep 1000 & sleep 1000", folder.path()));
  ASSERT_TRUE(child.ok());
  ASSERT_TRUE(Eventually([&] { return ProcessesThatMention(folder.path()).size() >= 2; }));
  int status = 0;
  // The supervisor is the parent of the child: our only child process.
  for (const pid_t pid : ProcessesThatMention("--supervise")) {
    if (waitpid(pid, &status, WNOHANG) == 0) kill(pid, SIGKILL);
  }
  EXPECT_EQ((*child)->Wait(nullptr).kind, ChildEnd::kLost);
  EXPECT_TRUE(Eventually([&] { return ProcessesThatMention(folder.path()).empty(); }));
}

TEST(Child, LimitsHold) {
  ScratchFolder folder;
  ChildOptions options = Shell("ulimit -t; ulimit -f; ulimit -c", folder.path());
  options.cpu_seconds = 17;
  options.file_bytes = 1 << 20;
  options.log = folder.path() + "/log";
  auto child = Child::Start(options);
  ASSERT_TRUE(child.ok());
  EXPECT_TRUE((*child)->Wait(nullptr).ok());
  EXPECT_EQ(*LoadFile(options.log, 1000), "17\n2048\n0\n");
}

TEST(TempRoot, SweepsWhatDeadWorkersLeftAndNothingElse) {
  ScratchFolder folder;
  auto living = TempRoot::Make(folder.path(), 0);
  ASSERT_TRUE(living.ok());
  const pid_t dead = fork();
  if (dead == 0) _exit(0);
  waitpid(dead, nullptr, 0);
  const std::string stale = absl::StrCat(folder.path(), "/kiln-worker-", dead, "-abcdef");
  std::filesystem::create_directories(stale + "/deep/folder");
  std::filesystem::create_directories(folder.path() + "/another-program");
  auto second = TempRoot::Make(folder.path(), 0);
  ASSERT_TRUE(second.ok());
  EXPECT_FALSE(std::filesystem::exists(stale));
  EXPECT_TRUE(std::filesystem::exists((*living)->path()));
  EXPECT_TRUE(std::filesystem::exists(folder.path() + "/another-program"));
  const std::string path = (*second)->path();
  second->reset();
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST(TempRoot, RefusesADirectoryItCannotUse) {
  EXPECT_EQ(TempRoot::Make("/no/such/directory", 0).status().code(),
            absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(TempRoot::Make("/proc", 0).status().code(), absl::StatusCode::kFailedPrecondition);
  ScratchFolder folder;
  const absl::Status full = TempRoot::Make(folder.path(), int64_t{1} << 60).status();
  EXPECT_EQ(full.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(full.message()), testing::HasSubstr("MiB are free"));
  EXPECT_EQ(folder.Entries(), 0);
}

}  // namespace
}  // namespace kiln::worker
