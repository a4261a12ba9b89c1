// SPDX-License-Identifier: Apache-2.0
#include "client/runtime/pool.h"

#include <linux/futex.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <new>
#include <system_error>

#include "client/runtime/cpu.h"
#include "client/runtime/error.h"

namespace {

constexpr uint32_t kOpen = 1u << 15;
constexpr uint32_t kJoinedMask = kOpen - 1;
constexpr uint32_t kStepUnit = 1u << 16;
constexpr int kMaxThreads = 4096;  // fits the joined field with room

// Long enough to bridge the gap between launches of a busy caller, short enough not to be noticed
// on a battery.
constexpr int64_t kSpinNs = 30'000;

// Who waits on the state word: the threads of the pool for a step, the launcher for the last thread
// to leave.
constexpr uint32_t kWorkerBit = 1, kLauncherBit = 2;

uint32_t StepOf(uint32_t state) { return state / kStepUnit; }

void FutexWait(std::atomic<uint32_t>* word, uint32_t expected, uint32_t bit) {
  syscall(SYS_futex, word, FUTEX_WAIT_BITSET_PRIVATE, expected, nullptr, nullptr, bit);
}

void FutexWake(std::atomic<uint32_t>* word, int count, uint32_t bit) {
  syscall(SYS_futex, word, FUTEX_WAKE_BITSET_PRIVATE, count, nullptr, nullptr, bit);
}

void Pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("yield");
#endif
}

int64_t NowNs() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * int64_t{1'000'000'000} + now.tv_nsec;
}

// Spins until done() or for spin_ns; returns done().
template <typename Done>
bool SpinUntil(int64_t spin_ns, Done done) {
  if (spin_ns == 0) return done();
  const int64_t deadline = NowNs() + spin_ns;
  do {
    for (int i = 0; i < 64; ++i) {
      if (done()) return true;
      Pause();
    }
  } while (NowNs() < deadline);
  return done();
}

void PinTo(pthread_t thread, int cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(cpu, &set);
  // A container may forbid it; threads then float, which is slower and nothing worse.
  (void)pthread_setaffinity_np(thread, sizeof(set), &set);
}

}  // namespace

kiln_code kiln_pool::Start(int threads, bool pin) {
  using kiln::runtime::Fail;
  const std::vector<int> cpus = kiln::runtime::UsableCpus();
  threads_ = threads;
  // With more threads than CPUs, a spinning thread would keep a working one from its CPU.
  spin_ns_ = threads <= static_cast<int>(cpus.size()) ? kSpinNs : 0;
  runs_ = std::make_unique<Run[]>(threads);
  scratch_.resize(threads);
  for (kiln::runtime::Pages& pages : scratch_) {
    if (!pages.Map(kiln::runtime::kScratchBytes)) {
      return Fail(KILN_OUT_OF_MEMORY,
                  "pool: no address space for the scratch of %d threads (%lld bytes each)", threads,
                  static_cast<long long>(kiln::runtime::kScratchBytes));
    }
  }
  for (int slot = 1; slot < threads; ++slot) {
    try {
      workers_.emplace_back([this, slot] { WorkerLoop(slot); });
    } catch (const std::system_error& error) {
      return Fail(KILN_OUT_OF_MEMORY, "pool: thread %d of %d could not be started: %s", slot + 1,
                  threads, error.what());
    }
    if (pin && !cpus.empty()) PinTo(workers_.back().native_handle(), cpus[slot % cpus.size()]);
  }
  if (pin && !cpus.empty()) {
    PinTo(pthread_self(), cpus[0]);
    pinned_ = true;
    creator_ = std::this_thread::get_id();
  }
  return KILN_OK;
}

kiln_pool::~kiln_pool() {
  stop_.store(true);
  state_.fetch_add(kStepUnit);
  FutexWake(&state_, INT_MAX, kWorkerBit);
  for (std::thread& worker : workers_) worker.join();
  if (pinned_ && creator_ == std::this_thread::get_id()) {
    (void)pthread_setaffinity_np(pthread_self(), sizeof(cpu_set_t),
                                 &kiln::runtime::OriginalAffinity());
  }
}

void* kiln_pool::Scratch(int slot, int64_t bytes) const {
  constexpr int64_t kPage = 4096;
  return scratch_[slot].end() - (bytes + kPage - 1) / kPage * kPage;
}

void kiln_pool::ForEachBlock(int64_t blocks, kiln::runtime::BlockBody body, void* context) {
  if (threads_ == 1 || blocks <= 1) {
    for (int64_t i = 0; i < blocks; ++i) body(context, i, 0);
    return;
  }
  body_ = body;
  context_ = context;
  for (int slot = 0; slot < threads_; ++slot) {
    // blocks * slot would overflow for the largest grids.
    const int64_t share = blocks / threads_, rest = blocks % threads_;
    const int64_t begin = share * slot + std::min<int64_t>(slot, rest);
    runs_[slot].next.store(begin, std::memory_order_relaxed);
    runs_[slot].end = begin + share + (slot < rest ? 1 : 0);
  }
  const uint32_t before = state_.load(std::memory_order_relaxed);
  // Sequentially consistent with AwaitChange: either this sees the sleeper, or the sleeper sees
  // this step.
  state_.store((StepOf(before) + 1) * kStepUnit | kOpen);
  if (sleepers_.load() > 0) {
    FutexWake(&state_, static_cast<int>(std::min<int64_t>(threads_ - 1, blocks - 1)), kWorkerBit);
  }
  RunBlocks(0);
  state_.fetch_and(~kOpen);  // every block is taken; who comes now has missed the step
  AwaitIdle();
}

// Returns when every thread that had joined the closed step has left it.
void kiln_pool::AwaitIdle() {
  const auto idle = [this] { return (state_.load(std::memory_order_acquire) & kJoinedMask) == 0; };
  if (SpinUntil(spin_ns_, idle)) return;
  launcher_sleeps_.store(true);
  for (uint32_t state = state_.load(); (state & kJoinedMask) != 0; state = state_.load()) {
    FutexWait(&state_, state, kLauncherBit);
  }
  launcher_sleeps_.store(false);
}

void kiln_pool::WorkerLoop(int slot) {
  uint32_t seen = 0;  // the step that this thread last joined or missed
  while (true) {
    seen = AwaitChange(seen);
    if (stop_.load()) return;
    if (!Join(&seen)) continue;
    RunBlocks(slot);
    Leave();
  }
}

// Returns the number of a step other than `seen`.
uint32_t kiln_pool::AwaitChange(uint32_t seen) {
  const auto changed = [this, seen] {
    return StepOf(state_.load(std::memory_order_acquire)) != seen;
  };
  const auto changed_or_quiet = [this, &changed] {
    return quiet_.load(std::memory_order_relaxed) || changed();
  };
  SpinUntil(spin_ns_, changed_or_quiet);
  if (!changed()) {
    sleepers_.fetch_add(1);
    for (uint32_t state = state_.load(); StepOf(state) == seen; state = state_.load()) {
      FutexWait(&state_, state, kWorkerBit);
    }
    sleepers_.fetch_sub(1);
  }
  return StepOf(state_.load());
}

// Joins the step that is open now, if any. A step number that has wrapped round is no harm: what is
// read after joining belongs to the step that is open.
bool kiln_pool::Join(uint32_t* seen) {
  uint32_t state = state_.load();
  do {
    *seen = StepOf(state);
    if ((state & kOpen) == 0) return false;
  } while (!state_.compare_exchange_weak(state, state + 1, std::memory_order_acq_rel));
  return true;
}

void kiln_pool::Leave() {
  const uint32_t after = state_.fetch_sub(1) - 1;
  if ((after & (kOpen | kJoinedMask)) == 0 && launcher_sleeps_.load()) {
    FutexWake(&state_, 1, kLauncherBit);
  }
}

void kiln_pool::RunBlocks(int slot) {
  for (int i = 0; i < threads_; ++i) {
    Run& run = runs_[(slot + i) % threads_];
    // The plain load first: an exhausted run is left alone, so that its counter does not creep.
    while (run.next.load(std::memory_order_relaxed) < run.end) {
      const int64_t block = run.next.fetch_add(1, std::memory_order_relaxed);
      if (block >= run.end) break;
      body_(context_, block, slot);
    }
  }
}

extern "C" kiln_code kiln_pool_create(int threads, int pin, kiln_pool** pool) {
  using kiln::runtime::Fail;
  if (pool == nullptr) return Fail(KILN_BAD_ARGUMENT, "kiln_pool_create: pool is null");
  *pool = nullptr;
  if (threads < 0 || threads > kMaxThreads) {
    return Fail(KILN_BAD_ARGUMENT, "kiln_pool_create: threads: %d; allowed: 0 (all usable) to %d",
                threads, kMaxThreads);
  }
  if (threads == 0) threads = kiln::runtime::UsableThreads();
  try {
    auto made = std::make_unique<kiln_pool>();
    const kiln_code code = made->Start(threads, pin != 0);
    if (code == KILN_OK) *pool = made.release();
    return code;
  } catch (const std::bad_alloc&) {
    return Fail(KILN_OUT_OF_MEMORY, "kiln_pool_create: out of memory for %d threads", threads);
  }
}

extern "C" int kiln_pool_threads(const kiln_pool* pool) {
  return pool == nullptr ? 0 : pool->threads();
}

extern "C" void kiln_pool_destroy(kiln_pool* pool) { delete pool; }
