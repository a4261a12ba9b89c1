// SPDX-License-Identifier: Apache-2.0
// What to say to someone for whom nothing is stored: the key, the command that would tune it, and
// the closest records with each field that differs. Pure.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "proto/contract/record.h"
#include "server/lookup.h"

namespace kiln::server {

// `near`: records of the same workload, newest first. NOT_FOUND: STALE if `answer` has a record
// that is too old for the caller, else NOT_TUNED.
absl::Status ExplainMiss(const Question& question, const Answer& answer,
                         const std::vector<Record>& near);

// "kiln tune NAME.kiln --dims M=512,... --device ID": for the program in a file of its operator's
// name.
std::string TuneCommand(const Question& question);

// "rec-1: threads 2, asked 4 (blocking); toolchain ... (ignored)": each field of the record that
// differs from what is asked.
std::string Differences(const Question& question, const Record& record);

}  // namespace kiln::server
