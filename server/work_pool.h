// SPDX-License-Identifier: Apache-2.0
// The server's own threads: what may wait (store writes, job logic) runs here, never in a gRPC
// reaction. With a timer. Thread-safe. Stop runs what is queued and drops what is timed.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "absl/time/time.h"

namespace kiln::server {

class WorkPool {
 public:
  using Task = std::function<void()>;

  explicit WorkPool(int threads);
  ~WorkPool();

  void Run(Task task);
  // Once, after `delay`; the id cancels it. On a pool thread.
  int64_t RunAfter(absl::Duration delay, Task task);
  void CancelTimer(int64_t id);
  // Again and again, `interval` after the last run ended, until Stop.
  void RunEvery(absl::Duration interval, Task task);
  int64_t depth() const;
  void Stop();

 private:
  using TimerKey = std::pair<absl::Time, int64_t>;
  void Work();
  void KeepTime();

  mutable std::mutex mutex_;
  std::condition_variable work_, time_;
  std::deque<Task> tasks_;
  std::map<TimerKey, Task> timers_;
  std::map<int64_t, absl::Time> timer_times_;
  int64_t last_timer_ = 0;
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace kiln::server
