// SPDX-License-Identifier: Apache-2.0
// What JobTable holds of one live job, and the right to change it. For job_table*.cc alone.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "server/job_table.h"

namespace kiln::server {

struct JobTable::WatchEntry {
  std::string operation;
  bool every_change = false;
  Watcher watcher;
};

struct JobTable::Call {
  Watcher watcher;
  std::shared_ptr<const Job> job;
  bool done = false, cancelled = false;
};

struct JobTable::Entry {
  Job job;
  bool claimed = false;  // a change is being written
  int joining = 0;  // operations being written: the job may not be stopped for want of interest
  bool stopping = false;  // nobody wants it: its key waits for the end
  absl::Time queued_since;
  // While leased:
  absl::Time lease_since;  // or since the time used was last counted into job.leased_seconds
  absl::Time heard;        // last sign of life
  absl::Time lease_began;
  int64_t done_before = 0;  // TrialsDone when the lease began
  Budget granted;           // with the lease
  double used_before = 0;   // job.leased_seconds when the lease began
  bool recovered = false;   // the lease was found at the server's start
  // Outcomes counted in the histogram: reports are repeated after a lost answer.
  std::set<std::pair<int64_t, int>> counted;
  int next_sequence = 0;
  std::set<std::string> cancelled_operations;  // of this process's life; the store knows the others
  std::map<int64_t, WatchEntry> watches;
};

// Exclusive right to change one live job. Waits for whoever has it.
class JobTable::Claim {
 public:
  Claim(JobTable* table, const std::string& name) : table_(table), name_(name) {
    std::unique_lock<std::mutex> lock(table_->mutex_);
    table_->changed_.wait(lock, [&] {
      entry_ = table_->Find(name_);
      return entry_ == nullptr || !entry_->claimed;
    });
    if (entry_ != nullptr) entry_->claimed = true;
  }
  ~Claim() { Release(); }
  Claim(const Claim&) = delete;
  Claim& operator=(const Claim&) = delete;

  void Release() {
    if (entry_ == nullptr) return;
    {
      std::lock_guard<std::mutex> lock(table_->mutex_);
      entry_->claimed = false;
    }
    entry_ = nullptr;
    table_->changed_.notify_all();
  }
  // The entry went with the end of its job.
  void Forget() {
    entry_ = nullptr;
    table_->changed_.notify_all();
  }
  Entry* entry() const { return entry_; }  // null: no such live job
  const std::string& name() const { return name_; }

 private:
  JobTable* const table_;
  const std::string name_;
  Entry* entry_ = nullptr;
};

}  // namespace kiln::server
