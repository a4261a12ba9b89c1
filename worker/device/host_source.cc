// SPDX-License-Identifier: Apache-2.0
#include "worker/device/host_source.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "client/runtime/kiln_runtime.h"

namespace kiln::worker {

HostSource ThisHost() {
  HostSource source;
#if defined(__x86_64__)
  source.architecture = "x86-64";
#elif defined(__aarch64__)
  source.architecture = "aarch64";
#else
  source.architecture = "generic";
#endif
  // The runtime checks plans against its own table, so the fingerprint is made of the same words.
  for (int i = 0; const char* feature = kiln_cpu_feature(i); ++i)
    source.features.push_back(feature);
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) == 0) {
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
      if (CPU_ISSET(cpu, &set)) source.affinity.push_back(cpu);
    }
  }
  source.page_bytes = sysconf(_SC_PAGESIZE);
  source.pages = std::max<int64_t>(0, sysconf(_SC_PHYS_PAGES));
  return source;
}

std::string FirstLine(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return std::string(absl::StripAsciiWhitespace(line));
}

std::vector<int> ParseCpuList(const std::string& text) {
  std::vector<int> cpus;
  for (absl::string_view part : absl::StrSplit(text, ',', absl::SkipWhitespace())) {
    const std::vector<absl::string_view> ends = absl::StrSplit(part, '-');
    int lo = 0, hi = 0;
    if (!absl::SimpleAtoi(ends.front(), &lo) || !absl::SimpleAtoi(ends.back(), &hi)) continue;
    if (ends.size() > 2 || lo < 0 || hi < lo || hi > 1 << 16) continue;
    for (int cpu = lo; cpu <= hi; ++cpu) cpus.push_back(cpu);
  }
  return cpus;
}

}  // namespace kiln::worker
