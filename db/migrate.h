// SPDX-License-Identifier: Apache-2.0
// The schema's versions, step by step. The steps are db/migrations/NNN_*.sql, embedded when Kiln is
// built; the version that a file has is its user_version.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "db/connection.h"

namespace kiln::db {

struct Migration {
  int version;       // that it leads to; they follow one another from 1
  const char* name;  // "001_spine"
  const char* sql;
  const char* verify;  // queries of one row and column that must answer 1
};

const std::vector<Migration>& Migrations();

// Brings the file at `path`, open for writing, to the last version: each step in one transaction,
// verified before it is committed. A file that holds something (version above 0) is first copied to
// FILE.vN-TIME.backup beside it. FAILED_PRECONDITION: DATABASE_NEWER; DATABASE_OLDER if it is older
// and `upgrade` is false. Other errors leave the last version that was reached.
absl::Status Migrate(Connection& connection, const std::string& path, bool upgrade,
                     const std::vector<Migration>& migrations);

// A copy at `to`, checked and synced, under that name only once it is whole; it has no log and
// needs none (journal mode DELETE), so that it can be read where nothing can be written.
// ALREADY_EXISTS, DATA_LOSS (the copy is damaged), UNAVAILABLE.
absl::Status CopyDatabase(Connection& connection, const std::string& to);

// Why a file of another version is not taken as it is: DATABASE_NEWER or DATABASE_OLDER.
absl::Status WrongVersion(const std::string& path, int64_t version, int known);

// Runs a step's verification queries. INTERNAL names the one that does not answer 1.
absl::Status Verify(Connection& connection, const Migration& migration);

}  // namespace kiln::db
