// SPDX-License-Identifier: Apache-2.0
// The test program stands in for the worker's binary: its children are itself, and with
// --run-job-for-ever DIR it is a worker to be killed.
#include <cstring>

#include "gtest/gtest.h"
#include "tests/worker/job_fixture.h"
#include "worker/entry.h"

int main(int argc, char** argv) {
  if (const std::optional<int> status = kiln::worker::RunHiddenProcess(argc, argv)) return *status;
  if (argc > 2 && strcmp(argv[1], "--run-job-for-ever") == 0)
    return kiln::worker::RunJobForEver(argv[2]);
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
