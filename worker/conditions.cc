// SPDX-License-Identifier: Apache-2.0
#include "worker/conditions.h"

#include <stdlib.h>

#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace kiln::worker {

void AddConditions(Measurement* measurement, int threads) {
  measurement->conditions["threads"] = absl::StrCat(threads);
  double load = 0;
  if (getloadavg(&load, 1) == 1) measurement->conditions["load"] = absl::StrFormat("%.2f", load);
  std::string word;
  if (std::ifstream("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor") >> word) {
    measurement->conditions["governor"] = word;
  }
  std::ifstream stat("/sys/fs/cgroup/cpu.stat");
  for (std::string key, value; stat >> key >> value;) {
    if (key == "throttled_usec") measurement->conditions["throttled_us"] = value;
  }
}

}  // namespace kiln::worker
