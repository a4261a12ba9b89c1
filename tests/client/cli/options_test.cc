// SPDX-License-Identifier: Apache-2.0
#include "client/cli/options.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <vector>

#include "client/cli/exit_code.h"
#include "client/cli/operators.h"
#include "client/cli/progress_line.h"
#include "client/cli/select.h"
#include "client/cli/words.h"
#include "proto/contract/error.h"

namespace kiln::cli {
namespace {

absl::StatusOr<ParsedLine> Parse(std::vector<const char*> arguments) {
  arguments.insert(arguments.begin(), "kiln");
  return ParseCommandLine(static_cast<int>(arguments.size()), arguments.data());
}

TEST(Options, ReadsEveryOptionOfTune) {
  const auto parsed = Parse(
      {"tune",     "matmul", "--dims",    "M=1,N=2", "--dims",   "K=3", "--type",  "A=f16",
       "--trials", "5",      "--seconds", "2.5",     "--seed",   "7",   "--force", "--wait-worker",
       "9",        "--json", "--timeout", "4",       "--server", "h:1"});
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  const Options& options = parsed->options;
  EXPECT_EQ(options.command, Command::kTune);
  EXPECT_EQ(options.select.program, "matmul");
  EXPECT_EQ(options.select.dims, "M=1,N=2,K=3");
  EXPECT_EQ(options.select.types, "A=f16");
  EXPECT_EQ(options.select.device, "cpu");
  EXPECT_EQ(options.trials, 5);
  EXPECT_EQ(options.seconds, 2.5);
  EXPECT_EQ(options.seed, 7);
  EXPECT_EQ(options.wait_worker, 9);
  EXPECT_EQ(options.timeout_seconds, 4);
  EXPECT_EQ(options.server, "h:1");
  EXPECT_TRUE(options.force && options.json && !options.local);
}

TEST(Options, ReadsEveryCommand) {
  const std::pair<std::vector<const char*>, Command> lines[] = {
      {{"lookup", "matmul"}, Command::kLookup},
      {{"run", "matmul", "--in", "A=a.npy"}, Command::kRun},
      {{"inspect", "x.kiln"}, Command::kInspect},
      {{"jobs"}, Command::kJobs},
      {{"records"}, Command::kRecords},
      {{"workers", "--json"}, Command::kWorkers},
      {{"job", "get", "jobs/1"}, Command::kJobGet},
      {{"job", "watch", "operations/1"}, Command::kJobWatch},
      {{"job", "cancel", "operations/1"}, Command::kJobCancel},
      {{"record", "get", "rec-1"}, Command::kRecordGet},
      {{"artifact", "get", "ab", "-o", "f"}, Command::kArtifactGet}};
  for (const auto& [line, command] : lines) {
    const auto parsed = Parse(line);
    ASSERT_TRUE(parsed.ok()) << line[0] << ": " << parsed.status();
    EXPECT_EQ(parsed->options.command, command) << line[0];
  }
}

TEST(Options, TheServerComesFromTheOptionTheEnvironmentOrTheDefault) {
  setenv("KILN_SERVER", "unix:/somewhere", 1);
  EXPECT_EQ(Parse({"jobs"})->options.server, "unix:/somewhere");
  EXPECT_EQ(Parse({"jobs", "--server", "h:2"})->options.server, "h:2");
  unsetenv("KILN_SERVER");
  EXPECT_EQ(Parse({"jobs"})->options.server, "127.0.0.1:7600");
}

TEST(Options, WrongLinesAreUsageErrors) {
  const std::vector<std::vector<const char*>> lines = {
      {},
      {"frobnicate"},
      {"tune"},
      {"tune", "matmul", "--frobnicate"},
      {"tune", "matmul", "--trials", "0"},
      {"tune", "matmul", "--trials", "many"},
      {"tune", "matmul", "--seconds", "-1"},
      {"lookup", "matmul", "--min-quality", "good"},
      {"artifact", "get", "ab"},
      {"job", "get"},
      {"jobs", "--timeout", "soon"},
      {"jobs", "--db", "f"},
      {"jobs", "--local", "--server", "h:1"}};
  for (const auto& line : lines) {
    const auto parsed = Parse(line);
    ASSERT_FALSE(parsed.ok());
    EXPECT_EQ(GetErrorInfo(parsed.status()).reason, "USAGE");
    EXPECT_EQ(ExitCodeOf(parsed.status()), kUsage);
  }
}

TEST(Options, HelpListsTheCommands) {
  const auto parsed = Parse({"--help"});
  ASSERT_TRUE(parsed.ok() && parsed->help.has_value());
  for (const char* command : {"tune", "lookup", "run", "inspect", "jobs", "records", "workers",
                              "job", "record", "artifact"}) {
    EXPECT_NE(parsed->help->text.find(command), std::string::npos) << command;
  }
  EXPECT_TRUE(Parse({"tune", "--help"})->help.has_value());
  EXPECT_NE(Parse({"--version"})->help->text.find("kiln "), std::string::npos);
}

TEST(ExitCode, FollowsTheTable) {
  using absl::StatusCode;
  const std::pair<StatusCode, ExitCode> table[] = {{StatusCode::kInvalidArgument, kUsage},
                                                   {StatusCode::kOutOfRange, kUsage},
                                                   {StatusCode::kNotFound, kNothingStored},
                                                   {StatusCode::kUnavailable, kUnavailable},
                                                   {StatusCode::kDeadlineExceeded, kUnavailable},
                                                   {StatusCode::kResourceExhausted, kRefused},
                                                   {StatusCode::kPermissionDenied, kRefused},
                                                   {StatusCode::kUnimplemented, kRefused},
                                                   {StatusCode::kFailedPrecondition, kRefused},
                                                   {StatusCode::kInternal, kInternal},
                                                   {StatusCode::kUnknown, kInternal},
                                                   {StatusCode::kDataLoss, kInternal},
                                                   {StatusCode::kCancelled, kInterrupted}};
  for (const auto& [code, exit] : table)
    EXPECT_EQ(ExitCodeOf(absl::Status(code, "x")), exit) << absl::StatusCodeToString(code);
  EXPECT_EQ(ExitCodeOf(absl::OkStatus()), kDone);
  EXPECT_EQ(ExitCodeOf(MakeError(StatusCode::kDataLoss, "x", {"RESULT_DIFFERS", {}})), kDifferent);
  EXPECT_EQ(ExitCodeOf(MakeError(StatusCode::kInternal, "x", {"JOB_FAILED", {}})), kJobFailed);
  EXPECT_EQ(
      ExitCodeOf(MakeError(StatusCode::kFailedPrecondition, "x", {"NO_WORKER_FOR_DEVICE", {}})),
      kUnavailable);
}

TEST(Select, ReadsAllParts) {
  SelectText text;
  text.program = "matmul";
  text.dims = "M=4,N=5,K=1..6";
  text.types = "A=f64";
  text.strides = "C=8:1";
  text.alignment = "A=4";
  text.policy = "tf32,library=no";
  text.objective = "cold";
  text.device = "cpu-0";
  const auto selection = ParseSelect(text);
  ASSERT_TRUE(selection.ok()) << selection.status();
  EXPECT_EQ(selection->workload.dims.at("K").hi, 6);
  EXPECT_EQ(selection->workload.types.at("A"), DType::kF64);
  EXPECT_EQ(selection->workload.strides.at("C"), (std::vector<int64_t>{8, 1}));
  EXPECT_EQ(selection->workload.alignment.at("A"), 4);
  EXPECT_TRUE(selection->workload.policy.tf32 && !selection->workload.policy.library);
  EXPECT_EQ(selection->cache, CacheState::kCold);
  EXPECT_FALSE(selection->burst.has_value());
  EXPECT_EQ(SelectWords(text),
            "matmul --dims M=4,N=5,K=1..6 --type A=f64 --stride C=8:1 --align A=4 --policy "
            "tf32,library=no "
            "--objective cold --device cpu-0");
}

TEST(Select, AnUnknownOperatorIsAnsweredWithTheKnownOnes) {
  SelectText text;
  text.program = "nosuch";
  const absl::Status status = ParseSelect(text).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  for (const StandardOperator& known : StandardOperators()) {
    EXPECT_NE(status.message().find(known.name), std::string::npos) << status;
  }
  text.program = "/nonexistent/x.kiln";
  EXPECT_NE(ParseSelect(text).status().message().find("/nonexistent/x.kiln"), std::string::npos);
}

TEST(Operators, EachIsALegalProgram) {
  EXPECT_GE(StandardOperators().size(), 20);
  for (const StandardOperator& known : StandardOperators()) {
    WorkloadSpec spec;
    spec.program = known.program;
    // Every dim that a head may name; those that it does not are left out by trial.
    const size_t begin = spec.program.find('(', spec.program.find("operator "));
    const std::string head = spec.program.substr(begin, spec.program.find(')', begin) - begin);
    for (const char* dim : {"B", "C", "D", "H", "K", "M", "N", "Q", "R", "S", "W", "Z"}) {
      if (head.find(dim) != std::string::npos) spec.dims[dim] = {3, 3};
    }
    const auto workload = CheckWorkload(spec);
    EXPECT_TRUE(workload.ok()) << known.name << ": " << workload.status();
  }
  ASSERT_NE(FindOperator("matmul"), nullptr);
  EXPECT_EQ(FindOperator("matmul.kiln"), nullptr);
}

TEST(Words, ProgressTellsPlacePhaseCountBestAndTime) {
  Job job;
  job.key.device = "cpu-1";
  job.progress.phase = "waiting";
  EXPECT_EQ(ProgressWords(job, std::nullopt), "waiting for a worker with cpu-1");
  job.progress.phase = "queued";
  job.progress.queue_position = 3;
  EXPECT_EQ(ProgressWords(job, std::nullopt), "queued, place 3");
  job.state = JobState::kRunning;
  job.progress = {.phase = "searching",
                  .done = 45,
                  .total = 200,
                  .failed = {{"mismatch", 2}, {"compile", 1}},
                  .best_ns = 1e6,
                  .seconds_left = 12};
  EXPECT_EQ(ProgressWords(job, 2e9),
            "searching 45/200, best 1.000 ms, 2000.0 GFLOP/s, 3 failed (1 compile, 2 mismatch), 12 "
            "s left");
}

TEST(Words, LinesAreCutToTheTerminal) {
  EXPECT_EQ(FitWords("searching 45/200", 10), "searching");
  EXPECT_EQ(FitWords("short", 80), "short");
}

}  // namespace
}  // namespace kiln::cli
