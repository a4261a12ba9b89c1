// SPDX-License-Identifier: Apache-2.0
// The commands. Each prints its result and returns OK, or the error that main prints and turns into
// an exit code.
#pragma once

#include "absl/status/status.h"
#include "client/cli/session.h"

namespace kiln::cli {

absl::Status RunTune(Session& session);
absl::Status RunLookup(Session& session);
absl::Status RunRun(Session& session);
absl::Status RunInspect(Session& session);
absl::Status RunJobs(Session& session);
absl::Status RunRecords(Session& session);
absl::Status RunWorkers(Session& session);
absl::Status RunJobGet(Session& session);
absl::Status RunJobWatch(Session& session);
absl::Status RunJobCancel(Session& session);
absl::Status RunRecordGet(Session& session);
absl::Status RunArtifactGet(Session& session);

}  // namespace kiln::cli
