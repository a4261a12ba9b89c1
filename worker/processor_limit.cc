// SPDX-License-Identifier: Apache-2.0
#include "worker/processor_limit.h"

#include <sys/resource.h>
#include <time.h>

#include <algorithm>
#include <cmath>

namespace kiln::worker {

void LimitProcessorTime(double seconds) {
  timespec used{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
  rlimit limit{};
  if (getrlimit(RLIMIT_CPU, &limit) != 0) return;
  // Only the soft limit: it is raised again with the next candidate.
  const double until = std::ceil(static_cast<double>(used.tv_sec) + std::max(1.0, seconds) + 1);
  limit.rlim_cur = std::min(static_cast<rlim_t>(std::min(until, 1e15)), limit.rlim_max);
  setrlimit(RLIMIT_CPU, &limit);
}

}  // namespace kiln::worker
