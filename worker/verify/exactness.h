// SPDX-License-Identifier: Apache-2.0
// Which outputs every right kernel computes to the last bit when all float inputs are whole numbers
// of at most some size: those whose values and partial sums, in any order, fit the types that they
// are held in. Pure.
#pragma once

#include <vector>

#include "proto/contract/workload.h"

namespace kiln::verify {

// Per output. Integer and bool outputs are exact unless they depend on floats that are not.
std::vector<bool> ExactOutputs(const Workload& workload, int magnitude);

// The largest of 8, 4, 2 and 1 that makes all outputs exact, else as many as any does.
int SmallMagnitude(const Workload& workload);

}  // namespace kiln::verify
