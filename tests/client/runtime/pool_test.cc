// SPDX-License-Identifier: Apache-2.0
#include "client/runtime/pool.h"

#include <sched.h>

#include <algorithm>
#include <numeric>

#include "client/runtime/cpu.h"
#include "tests/client/runtime/plan_fixture.h"

namespace kiln::runtime {
namespace {

struct Tally {
  std::vector<int64_t> runs;
  std::vector<int64_t> by_slot;
};

void CountRun(void* context, int64_t index, int slot) {
  auto& tally = *static_cast<Tally*>(context);
  ++tally.runs[index];
  ++tally.by_slot[slot * 16];  // apart, so that threads do not share a line
}

TEST(Pool, RunsEveryBlockOnceForManyThreadCountsAndGrids) {
  for (const int threads : {1, 2, 3, 5, 16}) {
    const PoolPtr pool = MakePool(threads);
    ASSERT_EQ(kiln_pool_threads(pool.get()), threads);
    for (const int64_t blocks : {0, 1, 2, 3, 15, 16, 17, 1000}) {
      Tally tally{std::vector<int64_t>(blocks), std::vector<int64_t>(threads * 16)};
      for (int round = 0; round < 20; ++round) {
        const std::lock_guard<std::mutex> lock(pool->mutex());
        pool->ForEachBlock(blocks, CountRun, &tally);
      }
      EXPECT_EQ(std::count(tally.runs.begin(), tally.runs.end(), 20), blocks);
      EXPECT_EQ(std::accumulate(tally.by_slot.begin(), tally.by_slot.end(), int64_t{0}),
                20 * blocks);
    }
  }
}

// Every block waits until all threads have one: only a pool that really uses its threads gets
// through.
void MeetAll(void* context, int64_t, int) {
  auto& waiting = *static_cast<std::atomic<int>*>(context);
  waiting.fetch_sub(1);
  while (waiting.load() > 0) std::this_thread::yield();
}

TEST(Pool, BringsAllItsThreads) {
  const PoolPtr pool = MakePool(4);
  for (int round = 0; round < 50; ++round) {
    std::atomic<int> waiting{4};
    const std::lock_guard<std::mutex> lock(pool->mutex());
    pool->ForEachBlock(4, MeetAll, &waiting);
    EXPECT_EQ(waiting.load(), 0);
  }
}

// Block 0 ends only when all others have run: the thread that is stuck in it must not keep its
// further blocks.
void FirstWaitsForRest(void* context, int64_t index, int) {
  auto& rest = *static_cast<std::atomic<int>*>(context);
  if (index != 0) {
    rest.fetch_sub(1);
    return;
  }
  while (rest.load() > 0) std::this_thread::yield();
}

TEST(Pool, BlocksOfABusyThreadAreTakenByOthers) {
  const PoolPtr pool = MakePool(2);
  std::atomic<int> rest{99};
  const std::lock_guard<std::mutex> lock(pool->mutex());
  pool->ForEachBlock(100, FirstWaitsForRest, &rest);
  EXPECT_EQ(rest.load(), 0);
}

TEST(Pool, WakesThreadsThatHaveGoneToSleep) {
  const PoolPtr pool = MakePool(3);
  pool->set_quiet(true);  // idle threads sleep at once
  for (int round = 0; round < 200; ++round) {
    std::atomic<int> waiting{3};
    const std::lock_guard<std::mutex> lock(pool->mutex());
    pool->ForEachBlock(3, MeetAll, &waiting);
    EXPECT_EQ(waiting.load(), 0);
  }
}

TEST(Pool, PinsAndUnpinsTheCallingThread) {
  cpu_set_t before, during, after;
  ASSERT_EQ(sched_getaffinity(0, sizeof(before), &before), 0);
  kiln_pool* pool = nullptr;
  ASSERT_EQ(kiln_pool_create(0, 1, &pool), KILN_OK) << kiln_error();
  EXPECT_EQ(kiln_pool_threads(pool), UsableThreads());
  ASSERT_EQ(sched_getaffinity(0, sizeof(during), &during), 0);
  EXPECT_EQ(CPU_COUNT(&during), 1);
  kiln_pool_destroy(pool);
  ASSERT_EQ(sched_getaffinity(0, sizeof(after), &after), 0);
  EXPECT_TRUE(CPU_EQUAL(&before, &after));
}

TEST(Pool, RefusesImpossibleThreadCounts) {
  kiln_pool* pool = nullptr;
  EXPECT_EQ(kiln_pool_create(-1, 0, &pool), KILN_BAD_ARGUMENT);
  EXPECT_EQ(kiln_pool_create(1 << 20, 0, &pool), KILN_BAD_ARGUMENT);
  EXPECT_NE(std::string(kiln_error()).find("1048576"), std::string::npos);
  EXPECT_EQ(pool, nullptr);
}

TEST(Pool, ComesAndGoesWithoutWork) {
  for (int round = 0; round < 50; ++round) MakePool(4);
}

TEST(Cpu, ListsFeaturesThatItAlsoAffirms) {
  int count = 0;
  for (; const char* feature = kiln_cpu_feature(count); ++count)
    EXPECT_EQ(kiln_cpu_has(feature), 1) << feature;
  EXPECT_GT(count, 0);
  EXPECT_EQ(kiln_cpu_has("quantum"), 0);
#if defined(__x86_64__)
  EXPECT_EQ(kiln_cpu_has("avx2"), __builtin_cpu_supports("avx2") ? 1 : 0);
  EXPECT_EQ(kiln_cpu_has("fma"), __builtin_cpu_supports("fma") ? 1 : 0);
  EXPECT_EQ(kiln_cpu_has("avx512f"), __builtin_cpu_supports("avx512f") ? 1 : 0);
#endif
}

TEST(Cpu, ListsEveryUsableCpuOnce) {
  std::vector<int> cpus = UsableCpus();
  std::sort(cpus.begin(), cpus.end());
  EXPECT_EQ(std::adjacent_find(cpus.begin(), cpus.end()), cpus.end());
  EXPECT_EQ(static_cast<int>(cpus.size()), CPU_COUNT(&OriginalAffinity()));
}

}  // namespace
}  // namespace kiln::runtime
