// SPDX-License-Identifier: Apache-2.0
// Everything below Report runs in a signal handler: system calls and its own stack, nothing else.
#include "worker/bench_fault.h"

#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>

#include "worker/bench_protocol.h"
#include "worker/compile/child.h"
#include "worker/verify/guard_fault.h"

namespace kiln::worker {

std::atomic<int> launched_entrant{-1};

namespace {

int report_descriptor = -1;
long page_bytes = 4096;

// From /proc/self/statm, whose first number is the address space in pages, and whose second the
// resident set.
int64_t MemoryBytes() {
  const int file = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
  if (file < 0) return 0;
  char text[64];
  const ssize_t size = read(file, text, sizeof text);
  close(file);
  int64_t pages[2] = {0, 0};
  int field = 0;
  for (ssize_t i = 0; i < size && field < 2; ++i) {
    if (text[i] < '0' || text[i] > '9')
      ++field;
    else
      pages[field] = pages[field] * 10 + (text[i] - '0');
  }
  return pages[kLimitsAddressSpace ? 0 : 1] * page_bytes;
}

void Send(bool out_of_bounds, const char* text, size_t size) {
  struct {
    FrameHeader header;
    int64_t fields[4];
    char text[512];
  } frame;
  if (size > sizeof frame.text) size = sizeof frame.text;
  frame.header.type = static_cast<uint32_t>(FrameType::kFault);
  frame.header.magic = FrameHeader{}.magic;
  frame.header.bytes = sizeof frame.fields + size;
  frame.fields[0] = out_of_bounds;
  frame.fields[1] = launched_entrant.load(std::memory_order_relaxed);
  frame.fields[2] = MemoryBytes();
  frame.fields[3] = static_cast<int64_t>(size);
  memcpy(frame.text, text, size);
  // Well below PIPE_BUF: goes out in one piece.
  [[maybe_unused]] const ssize_t put =
      write(report_descriptor, &frame, offsetof(decltype(frame), text) + size);
}

void Report(const verify::GuardFault& fault) {
  char text[512];
  Send(fault.in_guard, text, verify::FormatFault(fault, text, sizeof text));
}

void ReportAbort(int) {
  static const char kText[] = "crash: SIGABRT";
  Send(false, kText, sizeof kText - 1);
  _exit(verify::kFaultExit);
}

}  // namespace

void ReportFaultsTo(int descriptor) {
  report_descriptor = descriptor;
  page_bytes = sysconf(_SC_PAGESIZE);
  verify::InstallFaultReporter(Report);
  signal(SIGABRT, ReportAbort);  // an allocation that failed in C++ code ends here
}

}  // namespace kiln::worker
