// SPDX-License-Identifier: Apache-2.0
#include "proto/contract/job.h"

#include "proto/contract/words.h"

namespace kiln {
namespace {

constexpr absl::string_view kStates[] = {"queued", "running", "succeeded", "failed", "cancelled"};

}  // namespace

absl::string_view Print(JobState state) { return kStates[static_cast<int>(state)]; }
std::optional<JobState> ParseJobState(absl::string_view word) {
  return FindWord<JobState>(kStates, word);
}

}  // namespace kiln
