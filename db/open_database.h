// SPDX-License-Identifier: Apache-2.0
// Opens or creates a database file for its one owner: place, lock, header, damage, version, in that
// order, and nothing is written before all of them are right.
#pragma once

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "db/connection.h"
#include "db/instance_lock.h"
#include "db/migrate.h"
#include "db/sqlite_store.h"

namespace kiln::db {

// application_id of Kiln's files: "Kiln".
inline constexpr int kApplicationId = 0x4b696c6e;

struct OwnedDatabase {
  InstanceLock lock;
  std::unique_ptr<Connection> writer;  // in WAL mode, FULL, checkpoints left to its user
};

// Errors as OpenSqliteStore.
absl::StatusOr<OwnedDatabase> OpenDatabase(const SqliteOptions& options,
                                           const std::vector<Migration>& migrations);

}  // namespace kiln::db
