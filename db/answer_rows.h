// SPDX-License-Identifier: Apache-2.0
// Answers as rows: what lookups send, kept beside the record that it was made of. Derived from
// records and publications; a damaged row is reported and is nothing.
#pragma once

#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "db/shared_rows.h"

namespace kiln::db {

// --- within a write ---
// Kept, unless the record no longer answers its key or an artifact of it is not stored.
absl::Status InsertAnswer(Connection& connection, const StoredAnswer& answer,
                          Quarantine& quarantine);
// The answer of the record that answered the key until now. Before each publication.
absl::Status DeleteAnswer(Connection& connection, const KeyColumns& key, int64_t workload);

// --- reads ---
absl::StatusOr<std::optional<StoredAnswer>> SelectAnswer(Connection& connection,
                                                         absl::string_view question,
                                                         Quarantine& quarantine);
// As Store::ListAnswers.
absl::StatusOr<AnswerPage> SelectAnswers(Connection& connection, int64_t before, int limit,
                                         Quarantine& quarantine);
absl::StatusOr<Unanswered> SelectUnanswered(Connection& connection, int64_t version, int limit,
                                            Reading reading);

}  // namespace kiln::db
