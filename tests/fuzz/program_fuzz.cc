// SPDX-License-Identifier: Apache-2.0
// libFuzzer over program text: no bytes crash the checker, and what it accepts survives printing.
// The first four bytes choose the bindings, the rest is the program.
#include <cstdlib>
#include <cstring>
#include <string>

#include "proto/contract/workload.h"
#include "tests/proto/contract/language/seeds.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  uint32_t choice = 0;
  if (size < sizeof choice) return 0;
  std::memcpy(&choice, data, sizeof choice);
  std::string program(reinterpret_cast<const char*>(data) + sizeof choice, size - sizeof choice);
  kiln::WorkloadSpec spec = kiln::language::SpecOfBytes(program, choice);
  auto workload = kiln::CheckWorkload(spec);
  auto printed = kiln::PrintProgram(program);
  if (!workload.ok()) return 0;
  if (!printed.ok()) std::abort();
  spec.program = *printed;
  auto again = kiln::CheckWorkload(spec);
  if (!again.ok() || again->canonical != workload->canonical) std::abort();
  if (*kiln::PrintProgram(*printed) != *printed) std::abort();
  kiln::FootprintBytes(workload->graph);
  return 0;
}
