// SPDX-License-Identifier: Apache-2.0
#include "server/work_pool.h"

#include <algorithm>
#include <chrono>

#include "absl/time/clock.h"

namespace kiln::server {

WorkPool::WorkPool(int threads) {
  for (int i = 0; i < std::max(threads, 1); ++i) threads_.emplace_back([this] { Work(); });
  threads_.emplace_back([this] { KeepTime(); });
}

WorkPool::~WorkPool() { Stop(); }

void WorkPool::Run(Task task) {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    tasks_.push_back(std::move(task));
  }
  work_.notify_one();
}

int64_t WorkPool::RunAfter(absl::Duration delay, Task task) {
  const absl::Time at = absl::Now() + delay;
  int64_t id = 0;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    id = ++last_timer_;
    timers_[{at, id}] = std::move(task);
    timer_times_[id] = at;
  }
  time_.notify_one();
  return id;
}

void WorkPool::CancelTimer(int64_t id) {
  Task dropped;  // destroyed without the lock
  std::lock_guard<std::mutex> lock(mutex_);
  const auto it = timer_times_.find(id);
  if (it == timer_times_.end()) return;
  const auto timer = timers_.find({it->second, id});
  dropped = std::move(timer->second);
  timers_.erase(timer);
  timer_times_.erase(it);
}

void WorkPool::RunEvery(absl::Duration interval, Task task) {
  RunAfter(interval, [this, interval, task = std::move(task)] {
    task();
    RunEvery(interval, task);
  });
}

int64_t WorkPool::depth() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return static_cast<int64_t>(tasks_.size());
}

void WorkPool::Stop() {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    stopping_ = true;
    timers_.clear();
    timer_times_.clear();
  }
  work_.notify_all();
  time_.notify_all();
  for (std::thread& thread : threads_) {
    if (thread.joinable()) thread.join();
  }
}

void WorkPool::Work() {
  std::unique_lock<std::mutex> lock(mutex_);
  for (;;) {
    work_.wait(lock, [&] { return stopping_ || !tasks_.empty(); });
    if (tasks_.empty()) return;
    Task task = std::move(tasks_.front());
    tasks_.pop_front();
    lock.unlock();
    task();
    task = nullptr;  // what it holds goes before the next one is waited for
    lock.lock();
  }
}

void WorkPool::KeepTime() {
  std::unique_lock<std::mutex> lock(mutex_);
  while (!stopping_) {
    if (timers_.empty()) {
      time_.wait(lock);
      continue;
    }
    const absl::Duration left = timers_.begin()->first.first - absl::Now();
    if (left > absl::ZeroDuration()) {
      time_.wait_for(lock, absl::ToChronoNanoseconds(left));
      continue;
    }
    timer_times_.erase(timers_.begin()->first.second);
    tasks_.push_back(std::move(timers_.begin()->second));
    timers_.erase(timers_.begin());
    work_.notify_one();
  }
}

}  // namespace kiln::server
