// SPDX-License-Identifier: Apache-2.0
// The state of the machine that a measurement was made in.
#pragma once

#include "proto/contract/outcome.h"

namespace kiln::worker {

// Adds "threads", "load" (average of the last minute), "governor" and "throttled_us" (processor
// time that a quota has taken since the machine started), where the system tells them.
void AddConditions(Measurement* measurement, int threads);

}  // namespace kiln::worker
