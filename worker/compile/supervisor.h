// SPDX-License-Identifier: Apache-2.0
// The small process between the worker and a child. It starts the child in a process group of its
// own, is the reaper of everything that the child starts (PR_SET_CHILD_SUBREAPER), and when the
// control socket closes, the time limit comes or the child ends, kills and reaps all that is left.
// A parent-death signal alone would spare grandchildren such as cc1plus.
//
// It is the worker's own binary, run again with --supervise. On descriptor 3 it writes
//   pid PID\n                      when the child runs
//   end KIND CODE PEAK_BYTES\n     (ChildEnd) when nothing is left of it
#pragma once

#include <string>
#include <vector>

#include "worker/compile/child.h"

namespace kiln::worker {

inline constexpr int kControlDescriptor = 3;
inline constexpr char kSuperviseFlag[] = "--supervise";

// The command line for these options, the supervisor's own binary first.
std::vector<std::string> SupervisorCommand(const ChildOptions& options);

// What main does if argv[1] is --supervise. Returns the exit status.
int RunSupervisor(int argc, char** argv);

}  // namespace kiln::worker
