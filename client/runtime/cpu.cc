// SPDX-License-Identifier: Apache-2.0
#include "client/runtime/cpu.h"

#include <pthread.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <set>
#include <utility>

#include "client/runtime/kiln_runtime.h"

#if defined(__x86_64__)
#include <cpuid.h>
#elif defined(__aarch64__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

namespace kiln::runtime {
namespace {

#if defined(__x86_64__)

struct CpuidWords {
  uint32_t leaf1_ecx = 0, leaf7_ebx = 0, leaf7_ecx = 0, leaf7_edx = 0, leaf7_1_eax = 0;
  uint64_t saved_registers = 0;  // XCR0
};

CpuidWords ReadCpuid() {
  CpuidWords words;
  uint32_t a = 0, b = 0, c = 0, d = 0;
  if (__get_cpuid(1, &a, &b, &c, &d)) words.leaf1_ecx = c;
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d)) {
    words.leaf7_ebx = b, words.leaf7_ecx = c, words.leaf7_edx = d;
    if (a >= 1 && __get_cpuid_count(7, 1, &a, &b, &c, &d)) words.leaf7_1_eax = a;
  }
  if (words.leaf1_ecx >> 27 & 1) {  // OSXSAVE: xgetbv may be executed
    uint32_t low, high;
    __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    words.saved_registers = uint64_t{high} << 32 | low;
  }
  return words;
}

// XCR0 bits that must all be set: SSE and AVX; the same with AVX-512's masks and registers; AMX's
// tiles.
constexpr uint64_t kNoState = 0, kAvxState = 0x6, kAvx512State = 0xe6, kAmxState = 0x60000;

struct Feature {
  const char* name;
  uint32_t CpuidWords::*word;
  int bit;
  uint64_t state;
};

constexpr Feature kFeatures[] = {
    {"sse3", &CpuidWords::leaf1_ecx, 0, kNoState},
    {"ssse3", &CpuidWords::leaf1_ecx, 9, kNoState},
    {"sse4.1", &CpuidWords::leaf1_ecx, 19, kNoState},
    {"sse4.2", &CpuidWords::leaf1_ecx, 20, kNoState},
    {"popcnt", &CpuidWords::leaf1_ecx, 23, kNoState},
    {"avx", &CpuidWords::leaf1_ecx, 28, kAvxState},
    {"f16c", &CpuidWords::leaf1_ecx, 29, kAvxState},
    {"fma", &CpuidWords::leaf1_ecx, 12, kAvxState},
    {"bmi", &CpuidWords::leaf7_ebx, 3, kNoState},
    {"bmi2", &CpuidWords::leaf7_ebx, 8, kNoState},
    {"avx2", &CpuidWords::leaf7_ebx, 5, kAvxState},
    {"avx512f", &CpuidWords::leaf7_ebx, 16, kAvx512State},
    {"avx512dq", &CpuidWords::leaf7_ebx, 17, kAvx512State},
    {"avx512cd", &CpuidWords::leaf7_ebx, 28, kAvx512State},
    {"avx512bw", &CpuidWords::leaf7_ebx, 30, kAvx512State},
    {"avx512vl", &CpuidWords::leaf7_ebx, 31, kAvx512State},
    {"avx512vbmi", &CpuidWords::leaf7_ecx, 1, kAvx512State},
    {"avx512vnni", &CpuidWords::leaf7_ecx, 11, kAvx512State},
    {"avx512fp16", &CpuidWords::leaf7_edx, 23, kAvx512State},
    {"avx512bf16", &CpuidWords::leaf7_1_eax, 5, kAvx512State},
    {"avxvnni", &CpuidWords::leaf7_1_eax, 4, kAvxState},
    {"amx-bf16", &CpuidWords::leaf7_edx, 22, kAmxState},
    {"amx-tile", &CpuidWords::leaf7_edx, 24, kAmxState},
    {"amx-int8", &CpuidWords::leaf7_edx, 25, kAmxState},
};

bool Usable(const Feature& feature) {
  static const CpuidWords words = ReadCpuid();
  return (words.*feature.word >> feature.bit & 1) != 0 &&
         (words.saved_registers & feature.state) == feature.state;
}

#elif defined(__aarch64__)

struct Feature {
  const char* name;
  int capability;  // AT_HWCAP or AT_HWCAP2
  uint64_t mask;
};

constexpr Feature kFeatures[] = {
    {"neon", AT_HWCAP, HWCAP_ASIMD},      {"fphp", AT_HWCAP, HWCAP_ASIMDHP},
    {"dotprod", AT_HWCAP, HWCAP_ASIMDDP}, {"sve", AT_HWCAP, HWCAP_SVE},
    {"sve2", AT_HWCAP2, HWCAP2_SVE2},     {"i8mm", AT_HWCAP2, HWCAP2_I8MM},
    {"bf16", AT_HWCAP2, HWCAP2_BF16},
};

bool Usable(const Feature& feature) { return (getauxval(feature.capability) & feature.mask) != 0; }

#else

struct Feature {
  const char* name;
};
constexpr Feature kFeatures[] = {{"generic"}};
bool Usable(const Feature&) { return true; }

#endif

// A small number from a file of sysfs; -1 if there is none.
int ReadNumber(const char* path) {
  FILE* file = fopen(path, "re");
  if (file == nullptr) return -1;
  int value = -1;
  if (fscanf(file, "%d", &value) != 1) value = -1;
  fclose(file);
  return value;
}

std::pair<int, int> CoreOf(int cpu) {
  char path[128];
  snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%d/topology/physical_package_id", cpu);
  const int package = ReadNumber(path);
  snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%d/topology/core_id", cpu);
  const int core = ReadNumber(path);
  return {package, core < 0 ? cpu : core};
}

// CPUs that the cgroup's quota amounts to, rounded up; a large number without a quota.
int QuotaThreads() {
  constexpr int kUnlimited = 1 << 20;
  FILE* file = fopen("/sys/fs/cgroup/cpu.max", "re");
  if (file == nullptr) return kUnlimited;
  long long quota = 0, period = 0;
  const int fields = fscanf(file, "%lld %lld", &quota, &period);  // "max 100000": no field is read
  fclose(file);
  if (fields != 2 || quota <= 0 || period <= 0) return kUnlimited;
  return static_cast<int>(std::min<long long>((quota + period - 1) / period, kUnlimited));
}

}  // namespace

bool CpuHas(const char* feature) {
  for (const Feature& known : kFeatures) {
    if (strcmp(known.name, feature) == 0) return Usable(known);
  }
  return false;
}

const cpu_set_t& OriginalAffinity() {
  static const cpu_set_t set = [] {
    cpu_set_t now;
    CPU_ZERO(&now);
    if (sched_getaffinity(0, sizeof(now), &now) != 0) CPU_SET(0, &now);
    return now;
  }();
  return set;
}

std::vector<int> UsableCpus() {
  std::vector<int> first, siblings;
  std::set<std::pair<int, int>> cores;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &OriginalAffinity())) continue;
    (cores.insert(CoreOf(cpu)).second ? first : siblings).push_back(cpu);
  }
  first.insert(first.end(), siblings.begin(), siblings.end());
  return first;
}

int UsableThreads() {
  return std::max(1, std::min(CPU_COUNT(&OriginalAffinity()), QuotaThreads()));
}

Unpinned::Unpinned() {
  restore_ = pthread_getaffinity_np(pthread_self(), sizeof(saved_), &saved_) == 0 &&
             pthread_setaffinity_np(pthread_self(), sizeof(cpu_set_t), &OriginalAffinity()) == 0;
}

Unpinned::~Unpinned() {
  if (restore_) pthread_setaffinity_np(pthread_self(), sizeof(saved_), &saved_);
}

}  // namespace kiln::runtime

extern "C" int kiln_cpu_has(const char* feature) {
  return feature != nullptr && kiln::runtime::CpuHas(feature) ? 1 : 0;
}

extern "C" const char* kiln_cpu_feature(int index) {
  using kiln::runtime::kFeatures;
  for (const auto& feature : kFeatures) {
    if (kiln::runtime::Usable(feature) && index-- == 0) return feature.name;
  }
  return nullptr;
}
