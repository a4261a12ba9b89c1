// SPDX-License-Identifier: Apache-2.0
// The facts of a device that speed and legality depend on. Names only inform; identity is the
// canonical text of the facts.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace kiln {

enum class DeviceKind : uint8_t { kCpu, kCuda };
enum class Backing : uint8_t { kHardware, kSimulated };

struct DeviceFingerprint {
  DeviceKind kind = DeviceKind::kCpu;
  Backing backing = Backing::kHardware;
  std::string architecture;  // CPU: "x86-64" or "aarch64"; GPU: "sm_80", "sm_90a"
  std::string model;  // silicon: CPU "AuthenticAMD-25-1-1" (vendor-family-model-stepping); GPU chip
  std::vector<std::string>
      features;     // usable ones (cpuid and xgetbv), sorted: "avx2", "avx512f", "fma", "neon"
  int cores = 0;    // physical cores usable by this process (affinity, quota)
  int threads = 0;  // that a kernel is run with
  int numa_nodes = 1;
  int vector_bits = 128;                              // widest float vector
  int64_t l1d_bytes = 0, l2_bytes = 0, l3_bytes = 0;  // of one instance
  int l2_sharing = 1, l3_sharing = 1;                 // usable cores that share one instance
  int line_bytes = 64;
  // GPU only; 0 on a CPU.
  int multiprocessors = 0;
  int64_t shared_bytes_per_block = 0;  // with opt-in
  int registers_per_block = 0;
  std::string mig;  // MIG profile, else ""
  // Inform, no part of the identity:
  std::string name;  // product
  int64_t memory_bytes = 0;

  bool operator==(const DeviceFingerprint&) const = default;
  bool Has(absl::string_view feature) const;
};

// One canonical line without the informing fields; Parse(Print(d)) equals d but for them.
// INVALID_ARGUMENT names the field.
std::string Print(const DeviceFingerprint& device);
absl::StatusOr<DeviceFingerprint> ParseDevice(absl::string_view line);

// "cpu-" or "cuda-" or "sim-" and the first 16 hex digits of SHA-256 of the line: what --device
// takes and records carry.
std::string DeviceId(const DeviceFingerprint& device);

}  // namespace kiln
