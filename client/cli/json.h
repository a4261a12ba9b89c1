// SPDX-License-Identifier: Apache-2.0
// Answers, jobs and workers as the JSON objects of CLI.md. Pure.
#pragma once

#include "client/cli/output.h"
#include "client/kiln_client.h"
#include "proto/contract/workload.h"

namespace kiln::cli {

// Of tune, lookup and record get: `workload` gives the arguments the asker's names.
Json AnswerJson(const client::Answer& answer, const Workload& workload);
// The same fields without match and lookup, for lists.
Json RecordJson(const Record& record);
Json JobJson(const Job& job);
Json WorkerJson(const client::WorkerState& worker);
Json DeviceJson(const DeviceFingerprint& device);

// "2026-01-31T12:00:00.5Z"; null for a time that never was.
Json TimeJson(absl::Time time);

}  // namespace kiln::cli
