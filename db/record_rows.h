// SPDX-License-Identifier: Apache-2.0
// Records and publications as rows.
#pragma once

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "db/shared_rows.h"

namespace kiln::db {

// A record as its columns, made outside the writer's thread.
struct RecordRow {
  explicit RecordRow(const Record& record);
  KeyColumns key;
  std::string canonical;
  const DeviceFingerprint* device;  // the record's, which outlives this
  std::string schedule, plan, artifacts, spec, evidence, samples;
};

// --- within a write ---
// With its samples and, where it is new, its workload, whose row is returned.
absl::StatusOr<int64_t> InsertRecord(Connection& connection, const RecordRow& row, int64_t id,
                                     Quarantine& quarantine);
// `record` none: withdrawn.
absl::Status InsertPublication(Connection& connection, const KeyColumns& key, int64_t workload,
                               std::optional<int64_t> record, absl::string_view kind,
                               absl::string_view reason);
absl::StatusOr<bool> HasPublication(Connection& connection, const KeyColumns& key,
                                    int64_t workload);

// --- reads ---
// The record that answers the key, without samples; nothing if its row or publication is damaged
// (reported), or its text is not `canonical`. Whether its artifacts exist is not asked here.
absl::StatusOr<std::optional<Record>> SelectPublished(Connection& connection, const Key& key,
                                                      absl::string_view canonical, Reading reading);
absl::StatusOr<Record> SelectRecord(Connection& connection, absl::string_view id, Reading reading);
absl::StatusOr<PageOf<Record>> SelectRecords(Connection& connection, const RecordFilter& filter,
                                             const PageWindow& window, Reading reading);
// NOT_FOUND.
absl::StatusOr<bool> SelectIsPublished(Connection& connection, absl::string_view id);

}  // namespace kiln::db
