// SPDX-License-Identifier: Apache-2.0
// A family that exists in tests alone: plain kernels for C[M,N] = sum over K of A[M,K] * B[K,N] in
// f32, packed, one knob of which says what is wrong with them. Schedules read "faulty/1 fault=3
// variant=0".
#pragma once

#include <memory>
#include <set>
#include <string>

#include "worker/frontend.h"

namespace kiln::worker {

enum class Fault : int {
  kNone,
  kSegfault,  // writes to a wild pointer
  kEndlessLoop,
  kEndlessMemory,  // allocates and touches without end
  kWritesBeyond,   // past the end of C
  kReadsBeyond,    // past the end of B
  kHalfTheOutput,
  kNaN,
  kWrongTail,      // the last column misses a term
  kSlow,           // right, a thousand times slower
  kBadSource,      // does not compile
  kEndlessSource,  // the compiler does not get done with it
  kDoesNothing,
  kAborts,
  kNoEmission,  // the emitter fails
  kCount
};
const char* Print(Fault fault);

struct FaultyOptions {
  std::set<Fault> faults;  // that the space has, kNone among them or not
  int variants = 1;        // right kernels of each: they differ in the order of their loops
  bool library = true;     // schedule library/1 is passed on to the compiler
};

// Every schedule is tried if the budget has the trials.
std::unique_ptr<Frontend> MakeFaultyFrontend(const FaultyOptions& options);

Schedule FaultySchedule(Fault fault, int variant = 0);

}  // namespace kiln::worker
