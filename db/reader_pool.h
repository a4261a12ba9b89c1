// SPDX-License-Identifier: Apache-2.0
// Read-only connections, lent to one thread at a time; the one given back last is lent first,
// because its cache is warm. Opened when first needed, up to a number; beyond it callers wait.
// Thread-safe.
#pragma once

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "db/connection.h"

namespace kiln::db {

class ReaderPool {
 public:
  ReaderPool(std::string path, Connection::Mode mode, int most)
      : path_(std::move(path)), mode_(mode), most_(most) {}

  // Runs `read`, again a few times after a pause if the file was busy. A read is one statement, or
  // several that need no common snapshot: it never becomes a write.
  absl::Status Run(absl::FunctionRef<absl::Status(Connection&)> read);

  int64_t retries() const { return retries_; }
  int opened() const { return opened_; }

 private:
  absl::StatusOr<std::unique_ptr<Connection>> Borrow();
  void GiveBack(std::unique_ptr<Connection> connection);

  const std::string path_;
  const Connection::Mode mode_;
  const int most_;
  std::atomic<int64_t> retries_{0};
  std::atomic<int> opened_{0};
  std::mutex mutex_;
  std::condition_variable returned_;
  std::vector<std::unique_ptr<Connection>> idle_;  // guarded by mutex_
};

}  // namespace kiln::db
