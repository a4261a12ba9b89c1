// SPDX-License-Identifier: Apache-2.0
#include "worker/device/host_probe.h"

#include <numeric>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/contract/error.h"
#include "tests/worker/processes.h"
#include "worker/device/cgroup.h"

namespace kiln::worker {
namespace {

// A machine out of files: `packages` x `cores` x `smt` logical CPUs, numbered with the siblings
// last.
class FakeMachine {
 public:
  FakeMachine(int packages, int cores, int smt) {
    const int logical = packages * cores * smt;
    for (int cpu = 0; cpu < logical; ++cpu) {
      const int core = cpu % (packages * cores), package = core / cores;
      const std::string folder = absl::StrCat("sys/devices/system/cpu/cpu", cpu);
      Put(folder + "/topology/core_id", absl::StrCat(core % cores));
      Put(folder + "/topology/physical_package_id", absl::StrCat(package));
      std::string siblings, neighbours;
      for (int other = 0; other < logical; ++other) {
        if (other % (packages * cores) == core)
          absl::StrAppend(&siblings, siblings.empty() ? "" : ",", other);
        if (other % (packages * cores) / cores == package)
          absl::StrAppend(&neighbours, neighbours.empty() ? "" : ",", other);
      }
      Cache(folder + "/cache/index0", "1", "Data", "48K", siblings);
      Cache(folder + "/cache/index1", "1", "Instruction", "32K", siblings);
      Cache(folder + "/cache/index2", "2", "Unified", "2048K", siblings);
      Cache(folder + "/cache/index3", "3", "Unified", "32M", neighbours);
    }
    Put("sys/devices/system/node/online", packages == 1 ? "0" : absl::StrCat("0-", packages - 1));
    for (int node = 0; node < packages; ++node) {
      std::string list = absl::StrCat(node * cores, "-", node * cores + cores - 1);
      Put(absl::StrCat("sys/devices/system/node/node", node, "/cpulist"), list);
    }
    Put("proc/cpuinfo",
        "processor : 0\nvendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: 143\n"
        "model name\t: Made-up CPU\nstepping\t: 8\n\nprocessor : 1\n");
    Put("proc/meminfo", "MemTotal:       16384 kB\nMemFree: 1 kB\n");
    source.sys = folder_.path() + "/sys";
    source.proc = folder_.path() + "/proc";
    source.architecture = "x86-64";
    source.features = {"fma", "avx", "avx2"};
    source.affinity.resize(logical);
    std::iota(source.affinity.begin(), source.affinity.end(), 0);
  }

  void Put(const std::string& name, const std::string& text) {
    std::filesystem::create_directories(
        (std::filesystem::path(folder_.path()) / name).parent_path());
    folder_.Write(name, text + "\n");
  }

  HostSource source;

 private:
  void Cache(const std::string& index, const char* level, const char* type, const char* size,
             const std::string& shared) {
    Put(index + "/level", level), Put(index + "/type", type), Put(index + "/size", size);
    Put(index + "/shared_cpu_list", shared), Put(index + "/coherency_line_size", "64");
  }

  ScratchFolder folder_;
};

TEST(HostProbe, ReadsTheFactsOfAWholeMachine) {
  FakeMachine machine(2, 4, 2);
  auto device = ProbeHost(machine.source, 0);
  ASSERT_TRUE(device.ok()) << device.status();
  EXPECT_EQ(device->model, "GenuineIntel-6-143-8");
  EXPECT_EQ(device->name, "Made-up CPU");
  EXPECT_EQ(device->cores, 8);
  EXPECT_EQ(device->threads, 8);
  EXPECT_EQ(device->numa_nodes, 2);
  EXPECT_EQ(device->l1d_bytes, 48 << 10);
  EXPECT_EQ(device->l2_bytes, 2 << 20);
  EXPECT_EQ(device->l3_bytes, 32 << 20);
  EXPECT_EQ(device->l2_sharing, 1);
  EXPECT_EQ(device->l3_sharing, 4);
  EXPECT_EQ(device->line_bytes, 64);
  EXPECT_EQ(device->vector_bits, 256);
  EXPECT_EQ(device->memory_bytes, 16 << 20);
  EXPECT_THAT(device->features, testing::ElementsAre("avx", "avx2", "fma"));
}

// A CPU that has AVX-512 under a hypervisor that hides it is another device than one that shows it.
TEST(HostProbe, UsableFeaturesAreThePartOfTheIdentity) {
  FakeMachine machine(1, 2, 1);
  const std::string masked = DeviceId(*ProbeHost(machine.source, 0));
  machine.source.features.push_back("avx512f");
  auto shown = ProbeHost(machine.source, 0);
  EXPECT_EQ(shown->vector_bits, 512);
  EXPECT_NE(DeviceId(*shown), masked);
}

TEST(HostProbe, AContainerWithFewCoresIsAnotherDevice) {
  FakeMachine machine(1, 64, 2);
  const auto whole = ProbeHost(machine.source, 0);
  machine.source.affinity = {5, 6, 69};  // 69 is the sibling of 5
  const auto part = ProbeHost(machine.source, 0);
  EXPECT_EQ(part->cores, 2);
  EXPECT_EQ(part->threads, 2);
  EXPECT_EQ(part->l3_sharing, 2);
  EXPECT_NE(DeviceId(*whole), DeviceId(*part));
}

TEST(HostProbe, AQuotaLimitsCoresInEitherVersionOfControlGroups) {
  FakeMachine machine(1, 8, 1);
  machine.Put("proc/self/cgroup", "0::/system.slice/kiln");
  machine.Put("sys/fs/cgroup/system.slice/kiln/cpu.max", "max 100000");
  machine.Put("sys/fs/cgroup/system.slice/cpu.max", "350000 100000");
  machine.Put("sys/fs/cgroup/system.slice/kiln/memory.max", "1048576");
  auto device = ProbeHost(machine.source, 0);
  EXPECT_EQ(device->cores, 3);
  EXPECT_EQ(device->memory_bytes, 1048576);

  FakeMachine older(1, 8, 1);
  older.Put("proc/self/cgroup", "4:memory:/box\n1:cpu,cpuacct:/box\n0::/");
  older.Put("sys/fs/cgroup/cpu/box/cpu.cfs_quota_us", "50000");
  older.Put("sys/fs/cgroup/cpu/box/cpu.cfs_period_us", "100000");
  older.Put("sys/fs/cgroup/memory/box/memory.limit_in_bytes", "2097152");
  device = ProbeHost(older.source, 0);
  EXPECT_EQ(device->cores, 1);
  EXPECT_EQ(device->threads, 1);
  EXPECT_EQ(device->memory_bytes, 2097152);
}

TEST(HostProbe, ThreadsArePartOfTheIdentityAndBoundedByTheCpus) {
  FakeMachine machine(1, 4, 2);
  EXPECT_EQ(ProbeHost(machine.source, 8)->threads, 8);
  EXPECT_NE(DeviceId(*ProbeHost(machine.source, 1)), DeviceId(*ProbeHost(machine.source, 2)));
  const absl::Status over = ProbeHost(machine.source, 9).status();
  EXPECT_EQ(over.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(over.message()), testing::HasSubstr("1 to 8"));
  EXPECT_EQ(ProbeHost(machine.source, -1).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(HostProbe, AMachineThatSaysLittleStillHasADevice) {
  HostSource bare{.sys = "/no/such/sys",
                  .proc = "/no/such/proc",
                  .architecture = "aarch64",
                  .features = {"neon"},
                  .affinity = {0, 1},
                  .page_bytes = 4096,
                  .pages = 100};
  auto device = ProbeHost(bare, 0);
  ASSERT_TRUE(device.ok());
  EXPECT_EQ(device->cores, 2);
  EXPECT_EQ(device->vector_bits, 128);
  EXPECT_EQ(device->model, "unknown");
  EXPECT_EQ(device->memory_bytes, 409600);
  bare.affinity.clear();
  EXPECT_EQ(ProbeHost(bare, 0).status().code(), absl::StatusCode::kUnavailable);
}

TEST(HostProbe, ThisMachineHasAStableIdentity) {
  auto first = ProbeHost(0), second = ProbeHost(0);
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_EQ(DeviceId(*first), DeviceId(*second));
  EXPECT_GT(first->memory_bytes, 0);
  auto parsed = ParseDevice(Print(*first));
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(Print(*parsed), Print(*first));
}

TEST(CpuList, TakesRangesAndLeavesOutWhatIsMalformed) {
  EXPECT_THAT(ParseCpuList("0-2,8,10-11"), testing::ElementsAre(0, 1, 2, 8, 10, 11));
  EXPECT_THAT(ParseCpuList(""), testing::IsEmpty());
  EXPECT_THAT(ParseCpuList("x,3,5-4,1-2-3"), testing::ElementsAre(3));
}

}  // namespace
}  // namespace kiln::worker
