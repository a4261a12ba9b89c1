// SPDX-License-Identifier: Apache-2.0
// What may be stored as a job's record, and whether it answers its key from then on. Pure; the
// worker's word is taken for nothing that can be checked here.
#pragma once

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "proto/contract/job.h"
#include "proto/contract/record.h"
#include "proto/contract/workload.h"

namespace kiln::server {

// OK if the record is of the job's key and workload, verified within tolerance, measured under the
// job's objective by a timer that fits its device, and its plan is one that this workload and
// device can run. INVALID_ARGUMENT names the field. That the artifacts are stored is for the store
// to say.
absl::Status CheckRecord(const Job& job, const Workload& workload, const Record& record);

struct Decision {
  bool publish = false;
  std::string reason;  // "first", "1.034x of the incumbent", "0.998x of the incumbent: within the
                       // noise of 1.2 %"
};

// `incumbent_stale`: it was found under another toolchain, emitter or method than the record's. The
// rule: the first record is published; another one if its paired ratio to the incumbent
// (contest["incumbent"]: incumbent's time / this one's, from the same interleaved run) is above 1
// by more than the noise; in place of a stale one also if it is no slower beyond the noise, or if
// the stale one could not be run any more.
Decision DecidePublication(const Record& record, const std::optional<Record>& incumbent,
                           bool incumbent_stale);

// Half the interval of the median relative to the median, of the noisier of the two; at least 1 %.
double Noise(const Record& record, const std::optional<Record>& incumbent);

}  // namespace kiln::server
