// SPDX-License-Identifier: Apache-2.0
#include "worker/options.h"

#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/faults.h"
#include "tests/worker/processes.h"
#include "worker/worker_main.h"

namespace kiln::worker {
namespace {

using testing::HasSubstr;

Parsed Parse(std::vector<const char*> words) {
  words.insert(words.begin(), "kiln-worker");
  return ParseOptions(static_cast<int>(words.size()), words.data());
}

int ExitCode(std::vector<std::string> words) {
  words.insert(words.begin(), "kiln-worker");
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  return WorkerMain(static_cast<int>(argv.size()), argv.data(),
                    *MakeFaultyFrontend({.faults = {Fault::kNone}}));
}

TEST(WorkerOptions, FlagsReachTheOptions) {
  const Parsed parsed = Parse({"--server", "unix:/run/kiln", "--device", "cuda:1", "--threads", "2",
                               "--compiler", "clang++", "--compile-timeout", "1.5", "--run-timeout",
                               "3", "--no-cache", "--temp-dir", "/t"});
  ASSERT_FALSE(parsed.exit) << parsed.text;
  EXPECT_EQ(parsed.options.server, "unix:/run/kiln");
  EXPECT_EQ(parsed.options.device, "cuda:1");
  EXPECT_EQ(parsed.options.threads, 2);
  EXPECT_EQ(parsed.options.compiler, "clang++");
  EXPECT_EQ(parsed.options.compile_limit, absl::Milliseconds(1500));
  EXPECT_EQ(parsed.options.run_limit, absl::Seconds(3));
  EXPECT_EQ(parsed.options.cache_dir, "");
  EXPECT_EQ(parsed.options.temp_dir, "/t");
}

TEST(WorkerOptions, UsageErrorsEndWithTwoAndHelpWithZero) {
  EXPECT_EQ(Parse({"--threads", "-1"}).code, 2);
  EXPECT_EQ(Parse({"--no-such-flag"}).code, 2);
  EXPECT_THAT(Parse({"--run-timeout", "soon"}).text, HasSubstr("--run-timeout"));
  EXPECT_EQ(Parse({"--help"}).code, 0);
  EXPECT_THAT(Parse({"--help"}).text, HasSubstr("--compile-timeout"));
}

TEST(WorkerMain, RefusesWhatItCannotServeBeforeItLooksForAServer) {
  EXPECT_EQ(ExitCode({"--device", "cuda:0"}), 6);
  EXPECT_EQ(ExitCode({"--device", "sim:sm_90:H100"}), 6);
  EXPECT_EQ(ExitCode({"--device", "toaster"}), 2);
  EXPECT_EQ(ExitCode({"--threads", "4000"}), 2);
  EXPECT_EQ(ExitCode({"--compiler", "no-such-compiler", "--no-cache"}), 6);
  EXPECT_EQ(ExitCode({"--temp-dir", "/no/such/directory"}), 6);
}

}  // namespace
}  // namespace kiln::worker
