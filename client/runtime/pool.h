// SPDX-License-Identifier: Apache-2.0
// The threads that run the blocks of a step. A step is cut into one contiguous run of blocks per
// thread, which keeps neighbours' data in one core's cache; who is done early takes from the
// others' runs. A thread that wakes up late is not waited for: its blocks are taken by those that
// are there.
//
// Waiting is a spin of some microseconds and then a futex, so that back-to-back launches cost about
// a microsecond and an idle pool costs nothing. One launch at a time: `mutex` is held by whoever
// launches.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "client/runtime/kiln_runtime.h"
#include "client/runtime/memory.h"

namespace kiln::runtime {

// Scratch that each thread has, in address space; what a step's shared_bytes may ask for.
inline constexpr int64_t kScratchBytes = int64_t{64} << 20;

// Runs block `index`; `slot` is the thread's number in the pool, 0 for the one that launched.
using BlockBody = void (*)(void* context, int64_t index, int slot);

}  // namespace kiln::runtime

struct kiln_pool {
 public:
  // Starts threads 1..threads-1. KILN_OUT_OF_MEMORY if there are not as many to be had.
  kiln_code Start(int threads, bool pin);
  ~kiln_pool();

  int threads() const { return threads_; }
  std::mutex& mutex() { return mutex_; }

  // Calls body for 0..blocks-1 and returns when all are done. The caller holds `mutex`.
  void ForEachBlock(int64_t blocks, kiln::runtime::BlockBody body, void* context);

  // `bytes` of slot's scratch (at most kScratchBytes), page-aligned, next to a guard page.
  void* Scratch(int slot, int64_t bytes) const;

  // While set, idle threads sleep at once instead of spinning: the cores belong to a vendor
  // library's own threads.
  void set_quiet(bool quiet) { quiet_.store(quiet, std::memory_order_relaxed); }

 private:
  struct alignas(128) Run {  // one thread's blocks that nobody has taken yet
    std::atomic<int64_t> next{0};
    int64_t end = 0;
  };

  void WorkerLoop(int slot);
  uint32_t AwaitChange(uint32_t seen);
  bool Join(uint32_t* seen);
  void Leave();
  void RunBlocks(int slot);
  void AwaitIdle();

  int threads_ = 1;
  int64_t spin_ns_ = 0;
  std::vector<std::thread> workers_;
  std::vector<kiln::runtime::Pages> scratch_;
  std::unique_ptr<Run[]> runs_;
  std::mutex mutex_;
  bool pinned_ = false;
  std::thread::id creator_;

  // The step under way; written by the launcher while nobody is joined.
  kiln::runtime::BlockBody body_ = nullptr;
  void* context_ = nullptr;

  // One word for everything that is waited for: step number (16 bits), open (1), threads joined
  // (15).
  alignas(128) std::atomic<uint32_t> state_{0};
  std::atomic<int> sleepers_{0};
  std::atomic<bool> launcher_sleeps_{false};
  std::atomic<bool> quiet_{false};
  std::atomic<bool> stop_{false};
};
