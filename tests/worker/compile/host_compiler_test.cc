// SPDX-License-Identifier: Apache-2.0
#include "worker/compile/host_compiler.h"

#include <dlfcn.h>
#include <spawn.h>
#include <sys/wait.h>

#include <thread>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/contract/error.h"
#include "tests/worker/compile/endless.h"
#include "tests/worker/processes.h"

extern char** environ;

namespace kiln::worker {
namespace {

using testing::HasSubstr;
using testing::Not;

class HostCompilerTest : public testing::Test {
 protected:
  std::unique_ptr<HostCompiler> Make(CompilerOptions options = {}) {
    root_ = *TempRoot::Make(folder_.path(), 0);
    options.supervisor = OwnBinary();
    auto made = HostCompiler::Make(options, *root_);
    EXPECT_TRUE(made.ok()) << made.status();
    return *std::move(made);
  }
  // Only the root itself and its owner's lock are left.
  bool NothingLeft() {
    return folder_.Entries() == 2 && ProcessesThatMention(folder_.path()).empty();
  }

  ScratchFolder folder_;
  std::unique_ptr<TempRoot> root_;
};

TEST_F(HostCompilerTest, MakesALoadableArtifactThatDependsOnTheSourceAlone) {
  auto compiler = Make();
  EXPECT_THAT(compiler->identity(), HasSubstr("g++ "));
  EXPECT_THAT(compiler->identity(), Not(HasSubstr("/")));
  const std::string source = "extern \"C\" int Answer() { return 42; }";
  auto first = compiler->Compile(source, {"-O2"}, nullptr);
  auto second = compiler->Compile(source, {"-O2"}, nullptr);
  ASSERT_TRUE(first.ok() && first->artifact.has_value());
  ASSERT_TRUE(second.ok() && second->artifact.has_value());
  EXPECT_FALSE(second->artifact->from_cache);
  EXPECT_EQ(first->artifact->digest, second->artifact->digest);
  EXPECT_THAT(first->artifact->bytes, Not(HasSubstr(folder_.path())));
  EXPECT_TRUE(NothingLeft());

  ASSERT_TRUE(SaveFile(folder_.path() + "/a.so", first->artifact->bytes, false).ok());
  void* library = dlopen((folder_.path() + "/a.so").c_str(), RTLD_NOW);
  ASSERT_NE(library, nullptr) << dlerror();
  EXPECT_EQ(reinterpret_cast<int (*)()>(dlsym(library, "Answer"))(), 42);
  dlclose(library);
}

TEST_F(HostCompilerTest, NamesTheFirstErrorOfABadSource) {
  auto result =
      Make()->Compile("int a;\nint b = undeclared_name;\nint c = another;\n", {}, nullptr);
  ASSERT_TRUE(result.ok());
  EXPECT_FALSE(result->artifact.has_value());
  EXPECT_EQ(result->stage, Stage::kCompile);
  EXPECT_THAT(result->reason, HasSubstr("kernel.cc:2"));
  EXPECT_THAT(result->reason, HasSubstr("undeclared_name"));
  EXPECT_TRUE(NothingLeft());
}

TEST_F(HostCompilerTest, KillsACompilerThatTakesTooLongWithItsOwnChildren) {
  auto compiler = Make({.limit = absl::Seconds(2)});
  const Endless endless = EndlessSource();
  auto result = compiler->Compile(endless.source, endless.flags, nullptr);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->stage, Stage::kTimeout) << result->reason;
  EXPECT_THAT(result->reason, HasSubstr("2s"));
  EXPECT_TRUE(NothingLeft());
}

TEST_F(HostCompilerTest, ACancelKillsTheCompilerWithItsOwnChildren) {
  auto compiler = Make({.limit = absl::Minutes(10)});
  const Endless endless = EndlessSource();
  CancelToken cancel;
  std::thread other([&] {
    EXPECT_TRUE(
        Eventually([&] { return ProcessesThatMention("TMPDIR=" + folder_.path()).size() >= 2; }));
    cancel.Cancel();
  });
  auto result = compiler->Compile(endless.source, endless.flags, &cancel);
  other.join();
  EXPECT_EQ(result.status().code(), absl::StatusCode::kCancelled);
  EXPECT_TRUE(NothingLeft());
}

TEST_F(HostCompilerTest, AWorkerThatIsKilledLeavesNoProcessAndNoFile) {
  const std::string self = OwnBinary();
  std::string flag = "--compile-for-ever", directory = folder_.path(), binary = self;
  char* argv[] = {binary.data(), flag.data(), directory.data(), nullptr};
  pid_t worker = 0;
  ASSERT_EQ(posix_spawn(&worker, self.c_str(), nullptr, nullptr, argv, environ), 0);
  // The compiler proper runs under the driver.
  ASSERT_TRUE(Eventually(
      [&] {
        for (const pid_t pid : ProcessesThatMention(folder_.path())) {
          const std::string process = absl::StrCat("/proc/", pid);
          if (WholeFile(process + "/comm") == "cc1plus\n" &&
              WholeFile(process + "/cmdline").find("loop-limit") != std::string::npos) {
            return true;
          }
        }
        return false;
      },
      absl::Seconds(20)));
  ASSERT_EQ(kill(worker, SIGKILL), 0);
  waitpid(worker, nullptr, 0);
  EXPECT_TRUE(Eventually([&] {
    return ProcessesThatMention(folder_.path()).empty() && folder_.Entries() == 0;
  })) << folder_.Entries()
      << " files";
}

TEST_F(HostCompilerTest, AnOutputWithoutEndIsTheCandidatesFault) {
  auto result =
      Make({.output_bytes = 1 << 20})->Compile("char big[64 << 20] = {1};", {"-O0"}, nullptr);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->stage, Stage::kResources) << result->reason;
  EXPECT_TRUE(NothingLeft());
}

TEST_F(HostCompilerTest, TheCacheAnswersForEqualSourceFlagsAndCompiler) {
  ScratchFolder cache;
  auto compiler = Make({.cache_dir = cache.path() + "/deep"});
  const std::string source = "extern \"C\" int Answer() { return 1; }";
  ASSERT_FALSE(compiler->Compile(source, {"-O1"}, nullptr)->artifact->from_cache);
  EXPECT_TRUE(compiler->Compile(source, {"-O1"}, nullptr)->artifact->from_cache);
  EXPECT_FALSE(compiler->Compile(source, {"-O2"}, nullptr)->artifact->from_cache);
  EXPECT_FALSE(compiler->Compile(source + " ", {"-O1"}, nullptr)->artifact->from_cache);
  EXPECT_NE(compiler->Toolchain({"-O1"}), compiler->Toolchain({"-O2"}));
  EXPECT_EQ(compiler->Toolchain({"-O1"}), compiler->Toolchain({"-O1"}));
}

TEST(HostCompiler, RefusesToStartWithoutACompiler) {
  ScratchFolder folder;
  auto root = *TempRoot::Make(folder.path(), 0);
  absl::Status status =
      HostCompiler::Make({.supervisor = OwnBinary(), .compiler = "no-such-compiler"}, *root)
          .status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(GetErrorInfo(status).reason, "NO_COMPILER");
  EXPECT_THAT(std::string(status.message()), HasSubstr("no-such-compiler"));

  const std::string broken = folder.Write(
      "broken-g++", "#!/bin/sh\ncase $1 in -*v*|-dump*) echo g++ 1.0;; *) exit 1;; esac\n", true);
  status = HostCompiler::Make({.supervisor = OwnBinary(), .compiler = broken}, *root).status();
  EXPECT_EQ(GetErrorInfo(status).reason, "NO_COMPILER") << status;
}

TEST(ArtifactCache, ADamagedEntryIsAMiss) {
  ScratchFolder folder;
  auto cache = ArtifactCache::Open(folder.path(), 1 << 20);
  ASSERT_TRUE(cache.ok());
  const std::string key = ArtifactCache::Key("g++", {"-O3"}, "int x;");
  EXPECT_EQ(cache->Find(key), std::nullopt);
  ASSERT_TRUE(cache->Insert(key, "the bytes").ok());
  EXPECT_EQ(cache->Find(key), "the bytes");
  std::fstream file(folder.path() + "/" + key + ".so", std::ios::in | std::ios::out);
  file.seekp(66);
  file.put('X');
  file.close();
  EXPECT_EQ(cache->Find(key), std::nullopt);
  EXPECT_EQ(folder.Entries(), 0);
}

TEST(ArtifactCache, StaysWithinItsBoundAndKeepsWhatWasUsedLast) {
  ScratchFolder folder;
  auto cache = ArtifactCache::Open(folder.path(), 4000);
  ASSERT_TRUE(cache.ok());
  const auto old = std::filesystem::file_time_type::clock::now() - std::chrono::hours(2);
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(cache->Insert(absl::StrCat("key", i), std::string(1000, 'a')).ok());
    std::filesystem::last_write_time(folder.path() + absl::StrCat("/key", i, ".so"),
                                     old + std::chrono::minutes(i));
  }
  EXPECT_TRUE(cache->Find("key0").has_value());  // used now: key1 is the oldest
  ASSERT_TRUE(cache->Insert("key3", std::string(1000, 'b')).ok());
  EXPECT_TRUE(cache->Find("key0").has_value());
  EXPECT_FALSE(cache->Find("key1").has_value());
  EXPECT_TRUE(cache->Find("key3").has_value());
}

TEST(FirstErrorLine, FindsTheErrorDropsFoldersAndIsBounded) {
  EXPECT_EQ(
      FirstErrorLine(
          "kernel.cc: In function\nkernel.cc:3:1: error: no 'x'\nkernel.cc:4: error: other\n"),
      "kernel.cc:3:1: error: no 'x'");
  EXPECT_EQ(FirstErrorLine("/usr/bin/ld: kernel.o: undefined reference to `f'\n"),
            "ld: kernel.o: undefined reference to `f'");
  EXPECT_EQ(FirstErrorLine(""), "");
  EXPECT_EQ(FirstErrorLine(std::string(5000, 'e')).size(), 1024u);
  EXPECT_EQ(FirstErrorLine("abc\xC3\xA9xx", 4), "abc");
}

}  // namespace
}  // namespace kiln::worker
