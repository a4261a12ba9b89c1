// SPDX-License-Identifier: Apache-2.0
// The worker's process, from its command line to its exit status. Tests link it with a compiler of
// their own.
#pragma once

#include "worker/frontend.h"

namespace kiln::worker {

// Runs the worker until it is told to stop (SIGTERM, SIGINT), or one of its child processes if the
// command line says so. Returns the exit status of CLI.md.
int WorkerMain(int argc, char** argv, const Frontend& frontend);

}  // namespace kiln::worker
