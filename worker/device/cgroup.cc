// SPDX-License-Identifier: Apache-2.0
#include "worker/device/cgroup.h"

#include <algorithm>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace kiln::worker {
namespace {

// The group's folder and all above it up to the mount. Inside a container the path of
// /proc/self/cgroup may be the host's, which is not mounted: then only the mount itself is there to
// be read.
void ForEachAncestor(const std::string& mount, std::string path,
                     const std::function<void(const std::string&)>& visit) {
  while (true) {
    visit(mount + path);
    const size_t slash = path.rfind('/');
    if (slash == std::string::npos || path.empty()) return;
    path.resize(slash);
  }
}

void Lower(const std::string& quota, const std::string& period, CgroupLimits* limits) {
  double used = 0, per = 0;
  if (absl::SimpleAtod(quota, &used) && absl::SimpleAtod(period, &per) && used > 0 && per > 0) {
    limits->cpus = std::min(limits->cpus, used / per);
  }
}

void LowerMemory(const std::string& text, CgroupLimits* limits) {
  int64_t bytes = 0;
  if (absl::SimpleAtoi(text, &bytes) && bytes > 0)
    limits->memory_bytes = std::min(limits->memory_bytes, bytes);
}

}  // namespace

CgroupLimits ReadCgroupLimits(const HostSource& source) {
  CgroupLimits limits;
  std::ifstream file(source.proc + "/self/cgroup");
  const std::string root = source.sys + "/fs/cgroup";
  for (std::string line; std::getline(file, line);) {
    const std::vector<std::string> fields = absl::StrSplit(line, absl::MaxSplits(':', 2));
    if (fields.size() != 3) continue;
    const std::vector<std::string> controllers = absl::StrSplit(fields[1], ',');
    const auto controls = [&](absl::string_view name) {
      return std::find(controllers.begin(), controllers.end(), std::string(name)) !=
             controllers.end();
    };
    if (fields[0] == "0" && fields[1].empty()) {
      ForEachAncestor(root, fields[2], [&](const std::string& group) {
        const std::vector<std::string> quota = absl::StrSplit(FirstLine(group + "/cpu.max"), ' ');
        if (quota.size() == 2) Lower(quota[0], quota[1], &limits);
        LowerMemory(FirstLine(group + "/memory.max"), &limits);
      });
    }
    if (controls("cpu")) {
      ForEachAncestor(root + "/cpu", fields[2], [&](const std::string& group) {
        Lower(FirstLine(group + "/cpu.cfs_quota_us"), FirstLine(group + "/cpu.cfs_period_us"),
              &limits);
      });
    }
    if (controls("memory")) {
      ForEachAncestor(root + "/memory", fields[2], [&](const std::string& group) {
        LowerMemory(FirstLine(group + "/memory.limit_in_bytes"), &limits);
      });
    }
  }
  return limits;
}

}  // namespace kiln::worker
