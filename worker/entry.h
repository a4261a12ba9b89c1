// SPDX-License-Identifier: Apache-2.0
// The worker's binary runs as three processes: the worker, a supervisor beside each child, and the
// bench child. The hidden first argument says which.
#pragma once

#include <optional>

namespace kiln::worker {

// What main returns at once, if argv asks for one of the children; nothing for the worker itself.
// To be called before anything else: a supervisor forks and must be the only thread.
std::optional<int> RunHiddenProcess(int argc, char** argv);

}  // namespace kiln::worker
