// SPDX-License-Identifier: Apache-2.0
#include "worker/verify/guard_fault.h"

#include <signal.h>
#include <ucontext.h>
#include <unistd.h>

#include <atomic>
#include <cstring>

namespace kiln::verify {
namespace {

// Read in signal handlers, so of fixed size and without locks. An entry is in use while `end` is
// not 0.
struct Entry {
  std::atomic<uintptr_t> begin{0}, end{0}, data{0};
  std::atomic<int64_t> bytes{0};
  std::atomic<bool> taken{false};
  char name[64] = {};
};

constexpr int kEntries = 256;  // tensors are at most 64
Entry table[kEntries];
std::atomic<FaultReporter> reporter{nullptr};

GuardFault::Access AccessOf(const void* context) {
#if defined(__x86_64__)
  // Bit 1 of the page fault's error code: it was a write.
  const auto* machine = &static_cast<const ucontext_t*>(context)->uc_mcontext;
  return (machine->gregs[REG_ERR] & 2) != 0 ? GuardFault::Access::kWrite
                                            : GuardFault::Access::kRead;
#else
  static_cast<void>(context);
  return GuardFault::Access::kUnknown;
#endif
}

void Handle(int signal, siginfo_t* info, void* context) {
  GuardFault fault;
  if (signal == SIGSEGV || signal == SIGBUS) {
    fault = FindGuard(info->si_addr);
    fault.access = AccessOf(context);
  }
  fault.address = info->si_addr;
  fault.signal = signal;
  if (FaultReporter report = reporter.load()) report(fault);
  _exit(kFaultExit);
}

// What snprintf would do, which may not be called in a handler.
struct Text {
  char* data;
  size_t size, used = 0;
  void Add(const char* text) {
    while (*text != '\0' && used + 1 < size) data[used++] = *text++;
    if (size > 0) data[used] = '\0';
  }
  void AddNumber(uint64_t value, unsigned base) {
    char digits[24];
    int n = 23;
    digits[n] = '\0';
    do {
      digits[--n] = "0123456789abcdef"[value % base];
      value /= base;
    } while (value != 0);
    Add(digits + n);
  }
};

const char* SignalName(int signal) {
  switch (signal) {
    case SIGSEGV:
      return "SIGSEGV";
    case SIGBUS:
      return "SIGBUS";
    case SIGILL:
      return "SIGILL";
    default:
      return "SIGFPE";
  }
}

}  // namespace

size_t FormatFault(const GuardFault& fault, char* buffer, size_t size) {
  Text text{buffer, size};
  if (!fault.in_guard) {
    text.Add("crash: ");
    text.Add(SignalName(fault.signal));
    text.Add(" at 0x");
    text.AddNumber(reinterpret_cast<uintptr_t>(fault.address), 16);
    return text.used;
  }
  text.Add("out of bounds: ");
  text.Add(fault.access == GuardFault::Access::kWrite  ? "writes "
           : fault.access == GuardFault::Access::kRead ? "reads "
                                                       : "touches ");
  text.Add(fault.tensor);
  text.Add(", ");
  text.AddNumber(static_cast<uint64_t>(fault.distance < 0 ? -fault.distance : fault.distance), 10);
  text.Add(fault.distance < 0 ? " bytes before the beginning" : " bytes past the end");
  return text.used;
}

void InstallFaultReporter(FaultReporter report) {
  reporter.store(report);
  static char stack[64 * 1024];
  stack_t alternate{};
  alternate.ss_sp = stack;
  alternate.ss_size = sizeof(stack);
  sigaltstack(&alternate, nullptr);
  struct sigaction action {};
  action.sa_sigaction = Handle;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  sigemptyset(&action.sa_mask);
  for (int signal : {SIGSEGV, SIGBUS, SIGILL, SIGFPE}) sigaction(signal, &action, nullptr);
}

int RegisterGuard(const char* name, const void* begin, const void* end) {
  for (int slot = 0; slot < kEntries; ++slot) {
    bool free = false;
    if (!table[slot].taken.compare_exchange_strong(free, true)) continue;
    std::strncpy(table[slot].name, name, sizeof(table[slot].name) - 1);
    table[slot].begin = reinterpret_cast<uintptr_t>(begin);
    table[slot].end = reinterpret_cast<uintptr_t>(end);
    return slot;
  }
  return -1;
}

void MoveGuard(int slot, const void* data, int64_t bytes) {
  table[slot].data = reinterpret_cast<uintptr_t>(data);
  table[slot].bytes = bytes;
}

void UnregisterGuard(int slot) {
  table[slot].end = 0;
  table[slot].begin = 0;
  table[slot].taken = false;
}

GuardFault FindGuard(const void* address) {
  const uintptr_t at = reinterpret_cast<uintptr_t>(address);
  GuardFault fault;
  fault.address = address;
  for (const Entry& entry : table) {
    if (at < entry.begin || at >= entry.end) continue;
    const uintptr_t data = entry.data;
    const uintptr_t past = data + static_cast<uintptr_t>(entry.bytes.load());
    fault.in_guard = true;
    fault.tensor = entry.name;
    fault.distance =
        at < data ? -static_cast<int64_t>(data - at) : static_cast<int64_t>(at - past) + 1;
    return fault;
  }
  return fault;
}

}  // namespace kiln::verify
