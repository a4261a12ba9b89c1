// SPDX-License-Identifier: Apache-2.0
#include "server/operation_filter.h"

#include <gtest/gtest.h>

#include "proto/contract/error.h"

namespace kiln::server {
namespace {

bool Selects(absl::string_view text, JobState state, bool cancelled = false) {
  const absl::StatusOr<OperationFilter> filter = ParseOperationFilter(text);
  EXPECT_TRUE(filter.ok()) << filter.status();
  const Operation operation{
      .name = "operations/1", .job = "jobs/1", .client = "alice = b", .cancelled = cancelled};
  Job job;
  job.name = "jobs/1";
  job.state = state;
  return filter.ok() && Matches(*filter, operation, job);
}

TEST(OperationFilter, SelectsByEachTermAndByAllOfThem) {
  EXPECT_TRUE(Selects("", JobState::kQueued));
  EXPECT_TRUE(Selects("  ", JobState::kFailed));
  EXPECT_TRUE(Selects("done = true", JobState::kFailed));
  EXPECT_FALSE(Selects("done = true", JobState::kRunning));
  EXPECT_TRUE(Selects("done=true", JobState::kRunning, /*cancelled=*/true));
  EXPECT_TRUE(Selects("done=false", JobState::kQueued));
  EXPECT_TRUE(Selects("client = \"alice = b\"", JobState::kQueued));
  EXPECT_FALSE(Selects("client = alice", JobState::kQueued));
  EXPECT_TRUE(Selects("job = \"jobs/1\" AND state = running", JobState::kRunning));
  EXPECT_FALSE(Selects("job = \"jobs/1\" AND state = running", JobState::kQueued));
  EXPECT_FALSE(Selects("job = \"jobs/2\"", JobState::kQueued));
}

TEST(OperationFilter, RefusesWhatItDoesNotKnow) {
  for (const char* text : {"done", "done = perhaps", "done = true OR done = false", "state = lost",
                           "name = \"x\"", "client = \"alice", "done = true AND done = true",
                           "done = true AND ", "= true", "done > true"}) {
    const absl::Status status = ParseOperationFilter(text).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << text;
    EXPECT_EQ(GetErrorInfo(status).reason, "BAD_FILTER") << text;
  }
}

}  // namespace
}  // namespace kiln::server
