// SPDX-License-Identifier: Apache-2.0
// Tells a memory fault in a guard page from any other crash. The bench child installs a reporter
// that writes to its pipe; everything here that runs in the signal handler is async-signal-safe.
#pragma once

#include <cstddef>
#include <cstdint>

namespace kiln::verify {

struct GuardFault {
  bool in_guard = false;    // false: a fault somewhere else (address 0, a wild pointer, ...)
  const char* tensor = "";  // name, if in a guard
  int64_t distance = 0;  // bytes past the end (1 is the first), or negative: before the beginning
  enum class Access : uint8_t { kUnknown, kRead, kWrite } access = Access::kUnknown;
  int signal = 0;  // SIGSEGV, SIGBUS, SIGILL or SIGFPE
  const void* address = nullptr;
};

// "out of bounds: writes 4 bytes past the end of C" or "crash: SIGSEGV at 0x10"; returns the
// length, at most size - 1. Async-signal-safe.
size_t FormatFault(const GuardFault& fault, char* text, size_t size);

// Called on the faulting thread; it may only do what signal handlers may. When it returns, the
// process ends with kFaultExit.
using FaultReporter = void (*)(const GuardFault& fault);
inline constexpr int kFaultExit = 86;

// Installs handlers (on an alternate stack for the calling thread) for SIGSEGV, SIGBUS, SIGILL and
// SIGFPE.
void InstallFaultReporter(FaultReporter reporter);

// The table of living guards, of fixed size. Register returns a slot, or -1 if it is full (faults
// there are plain crashes then). `name` is copied, at most 63 bytes.
int RegisterGuard(const char* name, const void* begin, const void* end);
void MoveGuard(int slot, const void* data,
               int64_t bytes);  // where the tensor lies between begin and end
void UnregisterGuard(int slot);
// What lies at the address. Async-signal-safe.
GuardFault FindGuard(const void* address);

}  // namespace kiln::verify
