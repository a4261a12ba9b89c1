// SPDX-License-Identifier: Apache-2.0
#include "worker/entry.h"

#include <cstring>

#include "worker/bench_child.h"
#include "worker/compile/supervisor.h"

namespace kiln::worker {

std::optional<int> RunHiddenProcess(int argc, char** argv) {
  if (argc < 2) return std::nullopt;
  if (strcmp(argv[1], kSuperviseFlag) == 0) return RunSupervisor(argc, argv);
  if (strcmp(argv[1], kBenchChildFlag) == 0) return RunBenchChild();
  return std::nullopt;
}

}  // namespace kiln::worker
