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
// With its samples and, where it is new, its workload, whose row is returned. `device` is the row
// of its device, `created` in nanoseconds since 1970.
absl::StatusOr<int64_t> InsertRecord(Connection& connection, const RecordRow& row, int64_t id,
                                     int64_t device, int64_t created, Quarantine& quarantine);
// `record` none: withdrawn.
// `id` is above all others. What was kept to answer the key goes.
absl::Status InsertPublication(Connection& connection, int64_t id, const KeyColumns& key,
                               int64_t workload, std::optional<int64_t> record,
                               absl::string_view kind, absl::string_view reason);
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
// Whether the record answers its key, under whatever salt. NOT_FOUND.
absl::StatusOr<bool> SelectAnswersItsKey(Connection& connection, int64_t record);
// Adds the records of up to `limit` publications behind batch->upto, and moves that forward.
absl::Status SelectPublishedSince(Connection& connection, int limit, Reading reading,
                                  Unanswered* batch);

}  // namespace kiln::db
