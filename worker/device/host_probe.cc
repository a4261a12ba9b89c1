// SPDX-License-Identifier: Apache-2.0
#include "worker/device/host_probe.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "proto/contract/error.h"
#include "worker/device/cgroup.h"

namespace kiln::worker {
namespace {

using CpuSet = std::set<int>;

std::string CpuFolder(const HostSource& source, int cpu) {
  return absl::StrCat(source.sys, "/devices/system/cpu/cpu", cpu);
}

// Logical CPU -> one number for its physical core.
std::map<int, int> CoresOf(const HostSource& source) {
  std::map<std::pair<std::string, std::string>, int> numbers;
  std::map<int, int> cores;
  for (const int cpu : source.affinity) {
    const std::string folder = CpuFolder(source, cpu) + "/topology";
    std::string core = FirstLine(folder + "/core_id");
    if (core.empty()) core = absl::StrCat("cpu", cpu);  // without topology every CPU counts
    const auto key = std::make_pair(FirstLine(folder + "/physical_package_id"), core);
    cores[cpu] = numbers.emplace(key, static_cast<int>(numbers.size())).first->second;
  }
  return cores;
}

// "32K", "1M": bytes; 0 if it is neither.
int64_t ParseSize(const std::string& text) {
  int64_t factor = 1, value = 0;
  absl::string_view digits = text;
  if (absl::ConsumeSuffix(&digits, "K"))
    factor = 1 << 10;
  else if (absl::ConsumeSuffix(&digits, "M"))
    factor = 1 << 20;
  else if (absl::ConsumeSuffix(&digits, "G"))
    factor = 1 << 30;
  return absl::SimpleAtoi(digits, &value) ? value * factor : 0;
}

int UsableSharers(const std::string& list, const std::map<int, int>& cores) {
  CpuSet sharing;
  for (const int cpu : ParseCpuList(list)) {
    if (const auto core = cores.find(cpu); core != cores.end()) sharing.insert(core->second);
  }
  return std::max<int>(1, sharing.size());
}

// Of the first usable CPU: the instance that a kernel's first thread runs on.
void ReadCaches(const HostSource& source, const std::map<int, int>& cores,
                DeviceFingerprint* device) {
  const std::string folder = CpuFolder(source, source.affinity.front()) + "/cache/index";
  for (int i = 0; i < 16; ++i) {
    const std::string index = absl::StrCat(folder, i);
    const std::string level = FirstLine(index + "/level"), type = FirstLine(index + "/type");
    if (level.empty()) break;
    const int64_t bytes = ParseSize(FirstLine(index + "/size"));
    const int sharers = UsableSharers(FirstLine(index + "/shared_cpu_list"), cores);
    if (type == "Instruction") continue;
    if (level == "1") {
      device->l1d_bytes = bytes;
      if (int line = 0;
          absl::SimpleAtoi(FirstLine(index + "/coherency_line_size"), &line) && line > 0) {
        device->line_bytes = line;
      }
    }
    if (level == "2") device->l2_bytes = bytes, device->l2_sharing = sharers;
    if (level == "3") device->l3_bytes = bytes, device->l3_sharing = sharers;
  }
}

// The fields of the first processor of /proc/cpuinfo.
std::map<std::string, std::string> ReadCpuinfo(const HostSource& source) {
  std::map<std::string, std::string> fields;
  std::ifstream file(source.proc + "/cpuinfo");
  for (std::string line; std::getline(file, line) && !line.empty();) {
    const std::pair<std::string, std::string> field = absl::StrSplit(line, absl::MaxSplits(':', 1));
    fields[std::string(absl::StripAsciiWhitespace(field.first))] =
        std::string(absl::StripAsciiWhitespace(field.second));
  }
  return fields;
}

void ReadModel(const HostSource& source, DeviceFingerprint* device) {
  std::map<std::string, std::string> info = ReadCpuinfo(source);
  const auto join = [&info](std::initializer_list<const char*> names) {
    std::string text;
    for (const char* name : names) {
      if (info[name].empty()) return std::string();
      absl::StrAppend(&text, text.empty() ? "" : "-", info[name]);
    }
    return text;
  };
  device->model = join({"vendor_id", "cpu family", "model", "stepping"});
  if (device->model.empty())
    device->model = join({"CPU implementer", "CPU part", "CPU variant", "CPU revision"});
  if (device->model.empty()) device->model = "unknown";
  device->name = info["model name"].empty() ? device->model : info["model name"];
}

int CountNodes(const HostSource& source) {
  const CpuSet usable(source.affinity.begin(), source.affinity.end());
  int nodes = 0;
  for (const int node : ParseCpuList(FirstLine(source.sys + "/devices/system/node/online"))) {
    const auto cpus = ParseCpuList(
        FirstLine(absl::StrCat(source.sys, "/devices/system/node/node", node, "/cpulist")));
    nodes += std::any_of(cpus.begin(), cpus.end(), [&](int cpu) { return usable.count(cpu) > 0; });
  }
  return std::max(1, nodes);
}

int64_t ReadMemory(const HostSource& source, const CgroupLimits& limits) {
  int64_t bytes = source.pages * source.page_bytes;
  std::ifstream file(source.proc + "/meminfo");
  for (std::string line; std::getline(file, line);) {
    const std::vector<std::string> words = absl::StrSplit(line, ' ', absl::SkipEmpty());
    int64_t kib = 0;
    if (words.size() >= 2 && words[0] == "MemTotal:" && absl::SimpleAtoi(words[1], &kib))
      bytes = kib << 10;
  }
  return std::min(bytes, limits.memory_bytes);
}

int VectorBits(const DeviceFingerprint& device) {
  if (device.Has("avx512f")) return 512;
  if (device.Has("avx")) return 256;
  return 128;
}

}  // namespace

absl::StatusOr<DeviceFingerprint> ProbeHost(const HostSource& source, int threads) {
  if (source.affinity.empty())
    return absl::UnavailableError("the kernel does not say which CPUs this process may use");
  DeviceFingerprint device;
  device.architecture = source.architecture;
  device.features = source.features;
  std::sort(device.features.begin(), device.features.end());
  device.vector_bits = VectorBits(device);
  ReadModel(source, &device);

  const std::map<int, int> cores = CoresOf(source);
  CpuSet physical;
  for (const auto& [cpu, core] : cores) physical.insert(core);
  const CgroupLimits limits = ReadCgroupLimits(source);
  // A quota of one and a half CPUs keeps one busy all the time, not two.
  const double quota = std::max(1.0, std::floor(limits.cpus));
  device.cores = static_cast<int>(std::min<double>(physical.size(), quota));
  const int most = static_cast<int>(std::min<double>(source.affinity.size(), quota));
  if (threads < 0 || threads > most) {
    return InvalidField(
        "INVALID_THREADS", "threads", absl::StrCat(threads),
        "not a number of threads that this process may run",
        absl::StrCat("1 to ", most, ", or 0 for one per usable core (", device.cores, ")"));
  }
  device.threads = threads == 0 ? device.cores : threads;
  device.numa_nodes = CountNodes(source);
  ReadCaches(source, cores, &device);
  device.memory_bytes = ReadMemory(source, limits);
  return device;
}

absl::StatusOr<DeviceFingerprint> ProbeHost(int threads) { return ProbeHost(ThisHost(), threads); }

}  // namespace kiln::worker
