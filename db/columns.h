// SPDX-License-Identifier: Apache-2.0
// How values of the contract lie in columns: text and JSON, lossless. Pure, thread-safe.
//
// From... return false if the text is not what To... writes: a damaged row.
#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "proto/contract/job.h"
#include "proto/contract/outcome.h"
#include "proto/contract/record.h"

namespace kiln::db {

std::string ToColumn(const WorkloadSpec& spec);
std::string ToColumn(const Plan& plan);
std::string ToColumn(const std::vector<std::string>& words);
std::string ToColumn(const std::vector<int64_t>& numbers);
bool FromColumn(absl::string_view text, WorkloadSpec* spec);
bool FromColumn(absl::string_view text, Plan* plan);
bool FromColumn(absl::string_view text, std::vector<std::string>* words);
bool FromColumn(absl::string_view text, std::vector<int64_t>* numbers);

// The columns `evidence` of a record (all that has no column of its own; a measurement without its
// samples), `request` and `condition` of a job, and `detail` of an outcome (its measurement with at
// most kStoredSamples samples).
std::string EvidenceColumn(const Record& record);
std::string RequestColumn(const Job& job);
std::string ConditionColumn(const Job& job);
std::string DetailColumn(const Outcome& outcome);
bool FromEvidence(absl::string_view text, Record* record);
bool FromRequest(absl::string_view text, Job* job);
bool FromCondition(absl::string_view text, Job* job);
bool FromDetail(absl::string_view text, Outcome* outcome);

// Raw samples that a row keeps, evenly spread over those given; Measurement::samples says how many
// there were.
inline constexpr int kStoredSamples = 100;
std::vector<int64_t> StoredSamples(const std::vector<int64_t>& samples);

}  // namespace kiln::db
