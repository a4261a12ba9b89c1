// SPDX-License-Identifier: Apache-2.0
#include "db/writer.h"

#include <sqlite3.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "proto/contract/error.h"

namespace kiln::db {
namespace {

// More would make the first of a group wait long for the last.
constexpr size_t kGroup = 512;
// The log is copied into the file from this size on (32 MiB of pages), and while nothing is
// written. Each time costs two syncs and a copy of every page that changed.
constexpr int kCheckpointPages = 4096;
// From here on readers are made to wait for a moment, so that the log can begin anew: it must not
// grow without bound because there is always some reader.
constexpr int kRestartPages = 2 * kCheckpointPages;
constexpr int kRestartWaitMs = 100;
constexpr int kBusyMs = 5000;
constexpr std::chrono::seconds kIdle{1};

int64_t NanosSince(std::chrono::steady_clock::time_point start) {
  return std::chrono::nanoseconds(std::chrono::steady_clock::now() - start).count();
}

int RememberPages(void* pages, sqlite3*, const char*, int in_log) {
  *static_cast<int*>(pages) = in_log;
  return SQLITE_OK;
}

absl::Status Closing() {
  return MakeError(absl::StatusCode::kUnavailable, "the database is closing",
                   {"DATABASE_CLOSING", {}});
}

}  // namespace

Writer::Writer(std::unique_ptr<Connection> connection) : connection_(std::move(connection)) {
  page_bytes_ = connection_->QueryInteger("PRAGMA page_size").value_or(0);
  sqlite3_wal_hook(connection_->handle(), RememberPages, &wal_pages_);
  thread_ = std::thread([this] { Loop(); });
}

Writer::~Writer() {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    stopping_ = true;
  }
  arrived_.notify_all();
  thread_.join();
}

absl::Status Writer::Run(absl::FunctionRef<absl::Status(Connection&)> write) {
  auto pending = std::make_shared<Pending>();
  pending->write = write;
  std::unique_lock<std::mutex> lock(mutex_);
  if (stopping_) return Closing();
  queue_.push_back(pending);
  arrived_.notify_one();
  finished_.wait(lock, [&] { return pending->done; });
  return pending->status;
}

void Writer::Post(std::function<absl::Status(Connection&)> write) {
  auto pending = std::make_shared<Pending>();
  pending->write = std::move(write);
  pending->waits = false;
  std::lock_guard<std::mutex> lock(mutex_);
  if (stopping_) return;
  queue_.push_back(std::move(pending));
  arrived_.notify_one();
}

void Writer::Loop() {
  std::unique_lock<std::mutex> lock(mutex_);
  while (true) {
    if (!arrived_.wait_for(lock, kIdle, [&] { return !queue_.empty() || stopping_; })) {
      lock.unlock();
      Checkpoint(/*idle=*/true);
      lock.lock();
      continue;
    }
    if (queue_.empty()) break;  // stopping
    Group group;
    while (!queue_.empty() && group.size() < kGroup) {
      group.push_back(std::move(queue_.front()));
      queue_.pop_front();
    }
    lock.unlock();
    RunGroup(group);
    lock.lock();
    for (const auto& pending : group) pending->done = true;
    finished_.notify_all();
    lock.unlock();
    Checkpoint(/*idle=*/false);
    lock.lock();
  }
  connection_.reset();  // the last connection copies the log into the file
}

void Writer::RunGroup(const Group& group) {
  const auto start = std::chrono::steady_clock::now();
  const absl::Status status = RunInTransaction(group);
  counters_.writes += group.size();
  if (status.ok()) {
    ++counters_.commits;
    counters_.commit_ns += NanosSince(start);
    return;
  }
  // Whatever each of them decided, it decided on a state that does not exist.
  if (connection_->in_transaction()) connection_->Run("ROLLBACK").IgnoreError();
  counters_.write_failures += group.size();
  for (const auto& pending : group) pending->status = status;
}

absl::Status Writer::RunInTransaction(const Group& group) {
  KILN_RETURN_IF_ERROR(connection_->Run("BEGIN IMMEDIATE"));
  for (const auto& pending : group) {
    KILN_RETURN_IF_ERROR(RunOne(*pending, group.size() == 1));
  }
  return connection_->Run("COMMIT");
}

absl::Status Writer::RunOne(Pending& pending, bool alone) {
  if (!alone) KILN_RETURN_IF_ERROR(connection_->Run("SAVEPOINT one"));
  pending.status = pending.write(*connection_);
  // A full disk or an I/O error makes SQLite end the whole transaction.
  if (!connection_->in_transaction()) {
    return pending.status.ok() ? absl::InternalError("a write ended its transaction")
                               : pending.status;
  }
  if (pending.status.ok()) return alone ? absl::OkStatus() : connection_->Run("RELEASE one");
  if (absl::IsUnavailable(pending.status)) ++counters_.write_failures;
  if (!alone) {
    KILN_RETURN_IF_ERROR(connection_->Run("ROLLBACK TO one"));
    return connection_->Run("RELEASE one");
  }
  // Nothing to commit; COMMIT of the fresh transaction is free.
  KILN_RETURN_IF_ERROR(connection_->Run("ROLLBACK"));
  return connection_->Run("BEGIN IMMEDIATE");
}

void Writer::Checkpoint(bool idle) {
  sqlite3* db = connection_->handle();
  counters_.wal_bytes = wal_pages_ * page_bytes_;
  if (wal_pages_ == 0 || (!idle && wal_pages_ < kCheckpointPages)) return;
  const auto start = std::chrono::steady_clock::now();
  int in_log = 0, copied = 0;
  int result = sqlite3_wal_checkpoint_v2(db, nullptr, SQLITE_CHECKPOINT_PASSIVE, &in_log, &copied);
  if (wal_pages_ >= kRestartPages) {
    sqlite3_busy_timeout(db, kRestartWaitMs);
    absl::Cleanup restore = [db] { sqlite3_busy_timeout(db, kBusyMs); };
    result = sqlite3_wal_checkpoint_v2(db, nullptr, SQLITE_CHECKPOINT_RESTART, &in_log, &copied);
  }
  ++counters_.checkpoints;
  counters_.checkpoint_ns += NanosSince(start);
  // All copied: the next commit begins the log anew unless a reader still needs it, and then the
  // hook tells.
  if (result == SQLITE_OK && in_log == copied) wal_pages_ = 0;
}

}  // namespace kiln::db
