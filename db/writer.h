// SPDX-License-Identifier: Apache-2.0
// The one thread that writes and checkpoints. SQLite before 3.51.3 can damage a file when one
// connection writes while another checkpoints, and a transaction that begins as a read cannot
// become a write: so one connection does both, and each of its transactions is BEGIN IMMEDIATE.
//
// Writes that wait are committed together: one sync for all of them, each in its own savepoint, so
// that one that is refused takes nothing along. A write's answer comes after the commit.
//
// Thread-safe, but for the destructor.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "db/connection.h"

namespace kiln::db {

class Writer {
 public:
  struct Counters {
    std::atomic<int64_t> commits{0}, commit_ns{0};      // transactions; their sync included
    std::atomic<int64_t> writes{0}, write_failures{0};  // failures: of the disk
    std::atomic<int64_t> checkpoints{0}, checkpoint_ns{0};
    std::atomic<int64_t> wal_bytes{0};  // written since the log last began anew
  };

  explicit Writer(std::unique_ptr<Connection> connection);
  // Commits what is queued, copies the log into the file and closes it.
  ~Writer();

  // Runs `write` in a transaction and waits until that is durable. The status is `write`'s own, or
  // UNAVAILABLE if the transaction failed, and then nothing of it is stored. `write` may be refused
  // by its own status: it is undone. Not to be called from within a write.
  absl::Status Run(absl::FunctionRef<absl::Status(Connection&)> write);
  // The same without waiting; a failure is only counted.
  void Post(std::function<absl::Status(Connection&)> write);

  const Counters& counters() const { return counters_; }

 private:
  struct Pending {
    std::function<absl::Status(Connection&)> write;
    absl::Status status;
    bool waits = true;
    bool done = false;
  };
  using Group = std::vector<std::shared_ptr<Pending>>;

  void Loop();
  void RunGroup(const Group& group);
  absl::Status RunInTransaction(const Group& group);
  // OK while the transaction stands, whatever became of `pending` itself.
  absl::Status RunOne(Pending& pending, bool alone);
  void Checkpoint(bool idle);

  std::unique_ptr<Connection> connection_;
  Counters counters_;
  int64_t page_bytes_ = 0;
  int wal_pages_ = 0;  // as the last commit left them; the thread's own
  std::mutex mutex_;
  std::condition_variable arrived_, finished_;
  std::deque<std::shared_ptr<Pending>> queue_;  // guarded by mutex_, as `stopping_`
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace kiln::db
