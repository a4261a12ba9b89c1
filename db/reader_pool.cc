// SPDX-License-Identifier: Apache-2.0
#include "db/reader_pool.h"

#include <sqlite3.h>

#include <utility>

#include "absl/time/clock.h"
#include "proto/contract/error.h"

namespace kiln::db {
namespace {

constexpr int kAttempts = 3;
constexpr absl::Duration kPause = absl::Milliseconds(2);

}  // namespace

absl::Status ReaderPool::Run(absl::FunctionRef<absl::Status(Connection&)> read) {
  absl::Status status;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    if (attempt > 0) {
      ++retries_;
      absl::SleepFor(kPause * (1 << attempt));
    }
    absl::StatusOr<std::unique_ptr<Connection>> connection = Borrow();
    if (connection.ok()) {
      status = read(**connection);
      GiveBack(*std::move(connection));
    } else {
      status = connection.status();
    }
    // SQLite itself has waited by then; what remains is a file system's hiccup.
    if (!absl::IsUnavailable(status) || GetErrorInfo(status).reason != "DATABASE_BUSY") break;
  }
  return status;
}

absl::StatusOr<std::unique_ptr<Connection>> ReaderPool::Borrow() {
  {
    std::unique_lock<std::mutex> lock(mutex_);
    returned_.wait(lock, [&] { return !idle_.empty() || opened_ < most_; });
    if (!idle_.empty()) {
      std::unique_ptr<Connection> connection = std::move(idle_.back());
      idle_.pop_back();
      return connection;
    }
    ++opened_;
  }
  absl::StatusOr<std::unique_ptr<Connection>> connection = Connection::Open(path_, mode_);
  absl::Status status = connection.status();
  if (status.ok()) {
    status = (*connection)
                 ->Script(
                     "PRAGMA query_only = ON; PRAGMA mmap_size = 0; PRAGMA cache_size = -8192;"
                     "PRAGMA trusted_schema = OFF");
  }
  if (status.ok()) return connection;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    --opened_;
  }
  returned_.notify_one();
  return status;
}

void ReaderPool::GiveBack(std::unique_ptr<Connection> connection) {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    idle_.push_back(std::move(connection));
  }
  returned_.notify_one();
}

}  // namespace kiln::db
