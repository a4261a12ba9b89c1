// SPDX-License-Identifier: Apache-2.0
#include "worker/run_job.h"

#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <thread>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/contract/error.h"
#include "tests/worker/job_fixture.h"
#include "worker/compile/child.h"
#include "worker/processor_limit.h"

extern char** environ;

namespace kiln::worker {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

class RunJobTest : public testing::Test {
 protected:
  void Start(absl::Duration compile_limit = absl::Seconds(20)) {
    auto made = TestWorker::Make(folder_.path(), compile_limit);
    ASSERT_TRUE(made.ok()) << made.status();
    worker_ = *std::move(made);
  }
  JobEnd Run(const Frontend& frontend, const JobLease& lease, ReporterFake* reporter) {
    CancelToken cancel;
    return RunJob(lease, worker_.Tools(frontend), reporter, cancel);
  }
  // The root, its owner's lock, and nothing that runs.
  bool NothingLeft() {
    return folder_.Entries() == 2 && ProcessesThatMention(folder_.path()).empty();
  }

  ScratchFolder folder_;
  TestWorker worker_;
};

const Outcome* Find(const std::vector<Outcome>& outcomes, const Schedule& schedule) {
  for (const Outcome& outcome : outcomes) {
    if (outcome.schedule == schedule) return &outcome;
  }
  return nullptr;
}

TEST_F(RunJobTest, TunesAMatrixProductWithTheRealFamilies) {
  Start();
  JobLease lease = MatmulLease(worker_, 96, 80, 64);
  lease.budget.trials = 6;
  ReporterFake reporter(lease.budget);
  const auto frontend = MakeFrontend();
  const JobEnd end = Run(*frontend, lease, &reporter);
  ASSERT_EQ(end.kind, JobEnd::kRecord) << end.error;
  const Record& record = end.record;
  EXPECT_EQ(record.key.signature, lease.signature);
  EXPECT_EQ(record.key.device, DeviceId(worker_.device));
  EXPECT_FALSE(record.canonical.empty());
  EXPECT_FALSE(record.plan.steps.empty());
  EXPECT_GE(record.verification.sets, 5);
  EXPECT_GE(record.measurement.samples, 20);
  EXPECT_GT(record.measurement.median_ns, 0);
  EXPECT_LE(record.measurement.ci95_lo_ns, record.measurement.median_ns);
  EXPECT_GE(record.measurement.ci95_hi_ns, record.measurement.median_ns);
  EXPECT_EQ(record.measurement.conditions.at("threads"), "1");
  EXPECT_EQ(record.trials.count("mismatch"), 0u);
  EXPECT_THAT(record.emitter, Not(testing::IsEmpty()));
  for (const Step& step : record.plan.steps) {
    if (step.kind != StepKind::kKernel) continue;
    EXPECT_THAT(record.artifacts, testing::Contains(step.artifact));
  }
  for (const Artifact& artifact : end.artifacts)
    EXPECT_EQ(Sha256Hex(artifact.bytes), artifact.digest);
  if (!record.baseline.name.empty()) {
    EXPECT_THAT(record.baseline.name, HasSubstr("openblas"));
    EXPECT_GT(record.baseline.ratio, 0);
    EXPECT_EQ(record.contest.at("baseline"), record.baseline.ratio);
  }
  EXPECT_TRUE(NothingLeft());

  // Progress only ever grows.
  int64_t done = 0;
  for (const Progress& progress : reporter.updates()) {
    EXPECT_GE(progress.done, done);
    EXPECT_LE(progress.done, progress.total);
    done = progress.done;
  }
  EXPECT_EQ(done, 6);
  EXPECT_EQ(end.progress.phase, "publishing");
}

// Called in a process of its own: limits of the processor only go down again with it.
TEST(ProcessorLimit, StartsAnewWithEachCall) {
  const pid_t child = fork();
  if (child == 0) {
    rlimit first{}, second{};
    LimitProcessorTime(10);
    getrlimit(RLIMIT_CPU, &first);
    LimitProcessorTime(1000);
    getrlimit(RLIMIT_CPU, &second);
    const bool right = first.rlim_cur >= 10 && first.rlim_cur < 1000 && second.rlim_cur >= 1000 &&
                       second.rlim_cur < second.rlim_max;
    _exit(right ? 0 : 1);
  }
  int status = 1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

// C19, C20, C22, C24: each of these costs one candidate, with stage and reason; the winner is found
// all the same.
TEST_F(RunJobTest, EveryFaultIsAnOutcomeAndNoneWins) {
  Start(absl::Seconds(4));
  std::set<Fault> all;
  for (int i = 0; i < static_cast<int>(Fault::kCount); ++i) all.insert(static_cast<Fault>(i));
  const auto frontend = MakeFaultyFrontend({.faults = all, .library = false});
  const JobLease lease = MatmulLease(worker_, 48, 40, 32);
  ReporterFake reporter(lease.budget);
  const JobEnd end = Run(*frontend, lease, &reporter);
  ASSERT_EQ(end.kind, JobEnd::kRecord) << end.error;
  EXPECT_EQ(Print(end.record.schedule), Print(FaultySchedule(Fault::kNone)));
  const std::vector<Outcome> outcomes = reporter.outcomes();
  std::map<Fault, std::set<Stage>> expected = {
      {Fault::kNone, {Stage::kMeasured}},
      {Fault::kSegfault, {Stage::kCrash}},
      {Fault::kEndlessLoop, {Stage::kTimeout}},
      {Fault::kEndlessMemory, {Stage::kResources}},
      {Fault::kWritesBeyond, {Stage::kOutOfBounds}},
      {Fault::kReadsBeyond, {Stage::kOutOfBounds}},
      {Fault::kHalfTheOutput, {Stage::kMismatch}},
      {Fault::kNaN, {Stage::kMismatch}},
      {Fault::kWrongTail, {Stage::kMismatch}},
      {Fault::kSlow, {Stage::kTooSlow}},
      {Fault::kBadSource, {Stage::kCompile}},
      {Fault::kEndlessSource, {Stage::kTimeout}},
      {Fault::kDoesNothing, {Stage::kMismatch}},
      {Fault::kAborts, {Stage::kCrash}},
      {Fault::kNoEmission, {Stage::kEmit}},
  };
  if (!kLimitsAddressSpace) {
    // A sanitizer's allocator may be too slow to fill the resident set before the time is up.
    expected[Fault::kEndlessMemory].insert(Stage::kTimeout);
  }
  std::map<std::string, int64_t> histogram;
  for (const auto& [fault, stages] : expected) {
    const Outcome* outcome = Find(outcomes, FaultySchedule(fault));
    ASSERT_NE(outcome, nullptr) << Print(fault);
    EXPECT_EQ(stages.count(outcome->stage), 1u)
        << Print(fault) << ": " << Print(outcome->stage) << ", " << outcome->reason;
    EXPECT_EQ(outcome->reason.empty(), outcome->stage == Stage::kMeasured) << Print(fault);
    EXPECT_LE(outcome->reason.size(), 1024u);
    ++histogram[std::string(Print(outcome->stage))];
  }
  EXPECT_EQ(end.record.trials, histogram);
  EXPECT_THAT(Find(outcomes, FaultySchedule(Fault::kBadSource))->reason,
              HasSubstr("undeclared_by_kiln"));
  EXPECT_THAT(Find(outcomes, FaultySchedule(Fault::kWritesBeyond))->reason, HasSubstr("C"));
  EXPECT_THAT(Find(outcomes, FaultySchedule(Fault::kSegfault))->reason, HasSubstr("SIGSEGV"));
  // Sequences count up without a gap.
  for (size_t i = 0; i < outcomes.size(); ++i) EXPECT_EQ(outcomes[i].sequence, static_cast<int>(i));
  EXPECT_TRUE(NothingLeft());
}

TEST_F(RunJobTest, AJobWithoutARightCandidateFailsWithCountsAndTheFirstCompilerMessage) {
  Start();
  const auto frontend =
      MakeFaultyFrontend({.faults = {Fault::kHalfTheOutput, Fault::kBadSource}, .variants = 2});
  const JobLease lease = MatmulLease(worker_, 16, 16, 16);
  ReporterFake reporter(lease.budget);
  const JobEnd end = Run(*frontend, lease, &reporter);
  ASSERT_EQ(end.kind, JobEnd::kFailed);
  EXPECT_EQ(end.error.code(), absl::StatusCode::kFailedPrecondition);
  const ErrorInfo info = GetErrorInfo(end.error);
  EXPECT_EQ(info.reason, "ALL_CANDIDATES_FAILED");
  EXPECT_EQ(info.details.at("compile"), "2");
  EXPECT_EQ(info.details.at("mismatch"), "2");
  EXPECT_THAT(std::string(end.error.message()), HasSubstr("undeclared_by_kiln"));
}

TEST_F(RunJobTest, ACancelInsideACompileOrAKernelIsHonouredWithinTwoSeconds) {
  Start(absl::Minutes(5));
  for (const Fault fault : {Fault::kEndlessSource, Fault::kEndlessLoop}) {
    const auto frontend = MakeFaultyFrontend({.faults = {fault}});
    const JobLease lease = MatmulLease(worker_, 16, 16, 16);
    ReporterFake reporter(lease.budget);
    JobTools tools = worker_.Tools(*frontend);
    tools.run_limit = absl::Minutes(5);
    CancelToken cancel;
    absl::Time asked = absl::InfiniteFuture();
    std::thread other([&] {
      // Once the searching has begun, and a child of it is at work.
      Eventually(
          [&] {
            return !reporter.updates().empty() && reporter.updates().back().phase == "searching";
          },
          absl::Seconds(60));
      const auto at_work = [&] {
        return fault == Fault::kEndlessLoop
                   ? !BenchChildren().empty()
                   : !ProcessesThatMention("TMPDIR=" + folder_.path()).empty();
      };
      EXPECT_TRUE(Eventually(at_work, absl::Seconds(20)));
      asked = absl::Now();
      cancel.Cancel();
    });
    const JobEnd end = RunJob(lease, tools, &reporter, cancel);
    other.join();
    EXPECT_EQ(end.kind, JobEnd::kCancelled) << end.error;
    EXPECT_LT(absl::Now() - asked, absl::Seconds(2)) << Print(fault);
    EXPECT_TRUE(NothingLeft());
  }
}

// C32: the budget ends the job, with what is best so far.
TEST_F(RunJobTest, EndsWithinItsBudgetPlusOneCandidateAndTriesAtLeastOne) {
  Start();
  const auto frontend =
      MakeFaultyFrontend({.faults = {Fault::kNone}, .variants = 100000, .library = false});
  JobLease lease = MatmulLease(worker_, 64, 64, 64);
  lease.budget = {.trials = 1'000'000, .seconds = 6, .seed = 3};
  ReporterFake reporter(lease.budget);
  const absl::Time start = absl::Now();
  JobEnd end = Run(*frontend, lease, &reporter);
  ASSERT_EQ(end.kind, JobEnd::kRecord) << end.error;
  EXPECT_TRUE(end.record.budget_exhausted);
  EXPECT_LT(absl::Now() - start,
            absl::Seconds(6 + 25));  // a bound for hosts that are busy, not a measurement

  lease.budget = {.trials = 200, .seconds = 0.001, .seed = 3};
  ReporterFake hurried(lease.budget);
  end = Run(*frontend, lease, &hurried);
  ASSERT_EQ(end.kind, JobEnd::kRecord) << end.error;
  EXPECT_EQ(hurried.outcomes().size(), 1u);
}

TEST_F(RunJobTest, TrialsCountFailuresToo) {
  Start();
  const auto frontend = MakeFaultyFrontend(
      {.faults = {Fault::kNone, Fault::kHalfTheOutput}, .variants = 10, .library = false});
  JobLease lease = MatmulLease(worker_, 16, 16, 16);
  lease.budget.trials = 5;
  ReporterFake reporter(lease.budget);
  const JobEnd end = Run(*frontend, lease, &reporter);
  EXPECT_EQ(reporter.outcomes().size(), 5u);
  EXPECT_EQ(end.progress.done, 5);
}

TEST_F(RunJobTest, ACallerWhoJoinsRaisesTheTrials) {
  Start();
  const auto frontend = MakeFaultyFrontend(
      {.faults = {Fault::kNone, Fault::kHalfTheOutput}, .variants = 10, .library = false});
  JobLease lease = MatmulLease(worker_, 16, 16, 16);
  lease.budget.trials = 3;
  ReporterFake reporter(lease.budget);
  std::thread joins([&] {
    EXPECT_TRUE(Eventually([&] { return !reporter.outcomes().empty(); }, absl::Seconds(60)));
    Budget raised = lease.budget;
    raised.trials = 9;
    reporter.Raise(raised);
  });
  Run(*frontend, lease, &reporter);
  joins.join();
  std::set<std::string> tried;
  for (const Outcome& outcome : reporter.outcomes()) tried.insert(Print(outcome.schedule));
  EXPECT_EQ(tried.size(), 9u);  // and none of them twice
  EXPECT_EQ(reporter.outcomes().size(), 9u);
}

TEST_F(RunJobTest, WhatCrashedOrHungUnderThisCompilerIsNotTriedAgain) {
  Start();
  const auto frontend = MakeFaultyFrontend(
      {.faults = {Fault::kNone, Fault::kSegfault}, .variants = 2, .library = false});
  JobLease lease = MatmulLease(worker_, 16, 16, 16);
  const std::string here = worker_.compiler->Toolchain({"-O2"});
  lease.blocklist = {{FaultySchedule(Fault::kSegfault, 0), Stage::kCrash, here}};
  lease.known = {{.schedule = FaultySchedule(Fault::kSegfault, 1),
                  .stage = Stage::kCrash,
                  .toolchain = "g++ 1.0 pdp11 flags:0"}};
  lease.first_sequence = 7;
  ReporterFake reporter(lease.budget);
  const JobEnd end = Run(*frontend, lease, &reporter);
  ASSERT_EQ(end.kind, JobEnd::kRecord) << end.error;
  EXPECT_EQ(Find(reporter.outcomes(), FaultySchedule(Fault::kSegfault, 0)), nullptr);
  EXPECT_NE(Find(reporter.outcomes(), FaultySchedule(Fault::kSegfault, 1)),
            nullptr);  // another compiler's fault
  EXPECT_EQ(reporter.outcomes().front().sequence, 7);
}

TEST_F(RunJobTest, TheIncumbentStandsWhenNothingBeatsIt) {
  Start();
  const auto frontend =
      MakeFaultyFrontend({.faults = {Fault::kNone}, .variants = 1, .library = false});
  JobLease lease = MatmulLease(worker_, 32, 32, 32);
  ReporterFake first(lease.budget);
  const JobEnd won = Run(*frontend, lease, &first);
  ASSERT_EQ(won.kind, JobEnd::kRecord) << won.error;
  lease.incumbent = won.record;
  lease.incumbent->id = "rec-1";
  ReporterFake second(lease.budget);
  for (const Artifact& artifact : won.artifacts) second.artifacts[artifact.digest] = artifact.bytes;
  const JobEnd kept = Run(*frontend, lease, &second);
  EXPECT_EQ(kept.kind, JobEnd::kKeep) << kept.error;
  EXPECT_EQ(kept.record.id, "rec-1");

  // One that another emitter made is stale: what is measured now replaces it.
  lease.incumbent->emitter = "faulty/0";
  ReporterFake third(lease.budget);
  EXPECT_EQ(Run(*frontend, lease, &third).kind, JobEnd::kRecord);
}

TEST_F(RunJobTest, ABenchChildThatIsKilledCostsOneCandidate) {
  Start();
  const auto frontend =
      MakeFaultyFrontend({.faults = {Fault::kNone}, .variants = 12, .library = false});
  JobLease lease = MatmulLease(worker_, 48, 48, 48);
  ReporterFake reporter(lease.budget);
  std::thread killer([&] {
    EXPECT_TRUE(Eventually([&] { return reporter.outcomes().size() >= 2; }, absl::Seconds(60)));
    for (const pid_t pid : BenchChildren()) kill(pid, SIGKILL);
  });
  const JobEnd end = Run(*frontend, lease, &reporter);
  killer.join();
  ASSERT_EQ(end.kind, JobEnd::kRecord) << end.error;
  int lost = 0;
  for (const Outcome& outcome : reporter.outcomes()) lost += outcome.stage == Stage::kCrash;
  EXPECT_LE(lost, 1);
  EXPECT_GE(reporter.outcomes().size(), 12u);
}

// C23, C48.
TEST_F(RunJobTest, AWorkerThatIsKilledWhileItMeasuresLeavesNoProcessAndNoFile) {
  std::string binary = OwnBinary(), flag = "--run-job-for-ever", directory = folder_.path();
  char* argv[] = {binary.data(), flag.data(), directory.data(), nullptr};
  pid_t worker = 0;
  ASSERT_EQ(posix_spawn(&worker, binary.c_str(), nullptr, nullptr, argv, environ), 0);
  const auto ours = [&] { return ProcessesThatMention(folder_.path()); };
  // Worker, supervisor and bench child; the child has used a second of the processor: it is in the
  // loop.
  ASSERT_TRUE(Eventually(
      [&] {
        for (const pid_t pid : BenchChildren()) {
          const std::string line = WholeFile(absl::StrCat("/proc/", pid, "/stat"));
          if (line.empty()) continue;
          long user = 0;
          sscanf(line.c_str() + line.rfind(')') + 2,
                 "%*c %*d %*d %*d %*d %*d %*d %*d %*d %*d %*d %ld", &user);
          if (user > 100) return true;
        }
        return false;
      },
      absl::Seconds(60)));
  const std::vector<pid_t> children = ProcessesThatMention(BenchCommand());
  ASSERT_EQ(kill(worker, SIGKILL), 0);
  waitpid(worker, nullptr, 0);
  EXPECT_TRUE(Eventually([&] {
    return std::none_of(children.begin(), children.end(),
                        [](pid_t pid) { return kill(pid, 0) == 0; }) &&
           ours().empty() && folder_.Entries() == 0;
  }));
}

TEST_F(RunJobTest, RefusesWhatIsNotItsOwn) {
  Start();
  const auto frontend = MakeFrontend();
  JobLease lease = MatmulLease(worker_, 16, 16, 16);
  ReporterFake reporter(lease.budget);
  lease.signature[0] = lease.signature[0] == 'a' ? 'b' : 'a';
  EXPECT_EQ(GetErrorInfo(Run(*frontend, lease, &reporter).error).reason, "VERSION_SKEW");
  lease.device.cores += 1;
  EXPECT_EQ(GetErrorInfo(Run(*frontend, lease, &reporter).error).reason, "WRONG_DEVICE");
}

TEST_F(RunJobTest, AWorkloadThatDoesNotFitIsRefusedWithTheBytes) {
  Start();
  const auto frontend = MakeFrontend();
  const JobLease lease = MatmulLease(worker_, 1 << 19, 1 << 19, 8);
  ReporterFake reporter(lease.budget);
  const JobEnd end = Run(*frontend, lease, &reporter);
  EXPECT_EQ(end.error.code(), absl::StatusCode::kResourceExhausted) << end.error;
  EXPECT_THAT(std::string(end.error.message()), HasSubstr("bytes"));
  EXPECT_TRUE(reporter.outcomes().empty());
}

}  // namespace
}  // namespace kiln::worker
