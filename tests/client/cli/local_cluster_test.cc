// SPDX-License-Identifier: Apache-2.0
#include "client/cli/local_cluster.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "proto/contract/error.h"

namespace kiln::cli {
namespace {

// Beside a test's program lies no server: what is left is the folder's part.
TEST(LocalCluster, SaysWhatIsMissingAndSweepsWhatTheDeadLeft) {
  const std::filesystem::path folder =
      std::filesystem::path(testing::TempDir()) / absl::StrCat("kiln-local-test-", getpid());
  const std::filesystem::path of_the_dead = folder / "kiln-local-aaaaaa";
  const std::filesystem::path of_the_living = folder / "kiln-local-bbbbbb";
  const std::filesystem::path just_made = folder / "kiln-local-cccccc";  // not locked yet
  const std::filesystem::path foreign = folder / "of-someone";
  for (const auto& path : {of_the_dead, of_the_living, just_made, foreign}) {
    std::filesystem::create_directories(path / "inside");
    if (path == just_made) continue;
    std::filesystem::last_write_time(
        path, std::filesystem::file_time_type::clock::now() - std::chrono::hours(1));
  }
  const int owner = open(of_the_living.c_str(), O_RDONLY | O_DIRECTORY);
  ASSERT_EQ(flock(owner, LOCK_EX), 0);
  setenv("TMPDIR", folder.c_str(), 1);
  const auto cluster = LocalCluster::Start("", false);
  unsetenv("TMPDIR");
  EXPECT_EQ(cluster.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(GetErrorInfo(cluster.status()).reason, "LOCAL_NOT_STARTED");
  EXPECT_NE(cluster.status().message().find("kiln-server"), std::string::npos);
  EXPECT_FALSE(std::filesystem::exists(of_the_dead));
  EXPECT_TRUE(std::filesystem::exists(of_the_living));
  EXPECT_TRUE(std::filesystem::exists(just_made));
  EXPECT_TRUE(std::filesystem::exists(foreign));
  int left = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(folder)) ++left;
  EXPECT_EQ(left, 3) << "its own folder is gone, too";
  close(owner);
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace kiln::cli
