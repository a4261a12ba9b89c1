// SPDX-License-Identifier: Apache-2.0
// What the control groups of this process leave it, in either version of their file system: the
// least of its own group's and every parent's limit.
#pragma once

#include <cstdint>
#include <limits>

#include "worker/device/host_source.h"

namespace kiln::worker {

struct CgroupLimits {
  double cpus = std::numeric_limits<double>::infinity();  // processor time per time
  int64_t memory_bytes = std::numeric_limits<int64_t>::max();
};
CgroupLimits ReadCgroupLimits(const HostSource& source);

}  // namespace kiln::worker
