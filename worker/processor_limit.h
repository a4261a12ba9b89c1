// SPDX-License-Identifier: Apache-2.0
// The last line of defence against code that loops for ever: should the worker and the supervisor
// both be gone, the kernel of the operating system ends the process.
#pragma once

namespace kiln::worker {

// From now on this process may use `seconds` of processor time, all threads together, before it is
// ended by SIGXCPU. Each call starts anew.
void LimitProcessorTime(double seconds);

}  // namespace kiln::worker
