// SPDX-License-Identifier: Apache-2.0
// The server's log: lines on stderr with time and level. Thread-safe. Whoever finally handles an
// error logs it, nobody else.
#pragma once

#include "absl/strings/string_view.h"

namespace kiln::server {

enum class Level { kInfo, kWarning, kError };
void Log(Level level, absl::string_view text);
// Lines below the level are dropped from here on.
void SetLogLevel(Level least);

}  // namespace kiln::server
