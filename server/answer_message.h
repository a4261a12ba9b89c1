// SPDX-License-Identifier: Apache-2.0
// What a lookup sends for a record. Pure.
#pragma once

#include <string>
#include <vector>

#include "db/store.h"
#include "proto/contract/record.h"
#include "proto/contract/workload.h"

namespace kiln::server {

// GetScheduleResponse, serialised, without lookup_ns; the plan's arguments with the names that the
// asker's workload uses.
std::string AnswerMessage(Match match, const Record& record, const Workload& asked,
                          const std::vector<std::string>& stale_because);

// The answer to the question that the record's own spec asks: exact, for as long as the record is
// not stale. INVALID_ARGUMENT if the spec is not of the record's key and text: nothing may be sent
// to who asks so.
absl::StatusOr<db::StoredAnswer> AnswerToKeep(const Record& record);

}  // namespace kiln::server
