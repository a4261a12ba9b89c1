// SPDX-License-Identifier: Apache-2.0
// Where the facts about this machine come from: the kernel's files under two roots, and what only
// instructions or system calls tell. Tests put a made-up machine here.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace kiln::worker {

struct HostSource {
  std::string sys = "/sys";
  std::string proc = "/proc";
  std::string architecture;              // "x86-64", "aarch64"
  std::vector<std::string> features;     // that code may use: cpuid and xgetbv, or hwcaps
  std::vector<int> affinity;             // logical CPUs that this process may run on
  int64_t page_bytes = 4096, pages = 0;  // of memory, where /proc/meminfo says nothing
};

// The machine that this process runs on.
HostSource ThisHost();

// The trimmed first line of a file; empty if there is none.
std::string FirstLine(const std::string& path);
// "0-3,8": the numbers; malformed parts are left out.
std::vector<int> ParseCpuList(const std::string& text);

}  // namespace kiln::worker
