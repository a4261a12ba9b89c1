// SPDX-License-Identifier: Apache-2.0
// The bench child's last words: a frame of type kFault, written from the signal handler of a fault,
// with the guard page that was hit, if any.
#pragma once

#include <atomic>

namespace kiln::worker {

// Installs the handlers; frames go to `descriptor`.
void ReportFaultsTo(int descriptor);

// The entrant of a contest that is being launched; -1: none.
extern std::atomic<int> launched_entrant;

}  // namespace kiln::worker
