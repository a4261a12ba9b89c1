// SPDX-License-Identifier: Apache-2.0
#include "worker/log.h"

#include <stdio.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace kiln::worker {

void Log(absl::string_view line) {
  const std::string text =
      absl::StrCat(absl::FormatTime("%Y-%m-%dT%H:%M:%E3SZ", absl::Now(), absl::UTCTimeZone()),
                   " kiln-worker: ", line, "\n");
  fwrite(text.data(), 1, text.size(), stderr);  // one call, one line
}

}  // namespace kiln::worker
