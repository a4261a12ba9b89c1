// SPDX-License-Identifier: Apache-2.0
// What this process may use of the CPU: features, and logical CPUs in the order in which threads
// are pinned to them. Thread-safe.
#pragma once

#include <sched.h>

#include <vector>

namespace kiln::runtime {

// Whether code may use it: the CPU has it and the operating system saves its registers (cpuid and
// xgetbv, or hwcaps).
bool CpuHas(const char* feature);

// The affinity that the process had before this library pinned any thread of it.
const cpu_set_t& OriginalAffinity();

// Logical CPUs of OriginalAffinity: one of every physical core first, then their siblings.
std::vector<int> UsableCpus();

// Their number, or less if a cgroup quota allows less; at least 1.
int UsableThreads();

// Lets the calling thread run on every CPU of OriginalAffinity for as long as this lives: threads
// that a vendor library starts meanwhile inherit that, not the caller's one CPU.
class Unpinned {
 public:
  Unpinned();
  ~Unpinned();
  Unpinned(const Unpinned&) = delete;
  Unpinned& operator=(const Unpinned&) = delete;

 private:
  cpu_set_t saved_;
  bool restore_ = false;
};

}  // namespace kiln::runtime
