// SPDX-License-Identifier: Apache-2.0
// One line on stderr per event, with the time; for operators and journals. Thread-safe.
#pragma once

#include "absl/strings/string_view.h"

namespace kiln::worker {

void Log(absl::string_view line);

}  // namespace kiln::worker
