// SPDX-License-Identifier: Apache-2.0
// The test program is its own supervisor, and its own worker to be killed: --compile-for-ever DIR.
#include <string.h>

#include "gtest/gtest.h"
#include "tests/worker/compile/endless.h"
#include "worker/compile/supervisor.h"

int main(int argc, char** argv) {
  if (argc > 1 && strcmp(argv[1], kiln::worker::kSuperviseFlag) == 0)
    return kiln::worker::RunSupervisor(argc, argv);
  if (argc > 2 && strcmp(argv[1], "--compile-for-ever") == 0)
    return kiln::worker::CompileForEver(argv[2]);
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
