// SPDX-License-Identifier: Apache-2.0
#include "worker/compiler/model/analytic.h"

#include <algorithm>
#include <cmath>

#include "worker/compiler/tile/counts.h"

namespace kiln::compiler::model {
namespace {

using tile::LeafCount;
using tile::StepCount;
using tile::UseCount;

// Facts that fingerprints do not carry: typical of the out-of-order cores of the last ten years
// (Agner Fog's instruction tables for Haswell to Zen 4, Cortex-A76 to Neoverse V1). Cycles, unless
// said otherwise.
constexpr double kGigahertz = 3.0;
constexpr double kFmasPerCycle = 2, kLoadsPerCycle = 2, kIssuePerCycle = 4.5;
constexpr double kFmaLatency = 4;
constexpr double kTileCall = 18;     // call, prologue, loop exit (mispredicted half of the time)
constexpr double kBlockStart = 300;  // taking a block from the pool
constexpr double kStepStart =
    6000;                           // waking threads, and waiting for the last one, several threads
constexpr double kStepAlone = 200;  // one thread
constexpr double kCopyPerElement = 1.1;  // scalar packing of strided elements
constexpr double kCopyPerVector = 2;     // load, store, addresses
// Cycles per byte that out-of-order execution and prefetching leave visible, from the next level
// out.
constexpr double kFromL2 = 1.0 / 96, kFromL3 = 1.0 / 20, kFromMemory = 1.0 / 3.5;
constexpr double kMemorySharing =
    0.6;  // how much one more thread adds to the time of memory traffic of each

struct Caches {
  double l1, l2, l3;
};

// Outermost loop depth such that everything inside one of its iterations fits.
size_t FittingDepth(const StepCount& step, const LeafCount& leaf, double capacity) {
  for (size_t d = 0; d <= leaf.loops.size(); ++d) {
    double total = 0;
    for (const LeafCount& other : step.leaves) {
      // Leaves that share the d outermost loops share the cache; the others run at another time.
      const bool together =
          other.loops.size() >= d &&
          std::equal(leaf.loops.begin(), leaf.loops.begin() + static_cast<std::ptrdiff_t>(d),
                     other.loops.begin());
      if (!together) continue;
      for (const UseCount& use : other.uses)
        total += use.footprint[std::min(d, use.footprint.size() - 1)] * (&other == &leaf ? 1 : 0.5);
    }
    if (total <= capacity) return d;
  }
  return leaf.loops.size();
}

// Bytes that a leaf moves into a cache of this capacity, over the whole step.
double Traffic(const StepCount& step, const LeafCount& leaf, double capacity) {
  const size_t d = FittingDepth(step, leaf, capacity);
  double bytes = 0;
  for (const UseCount& use : leaf.uses) {
    double times = 1;
    for (size_t l = 0; l < d; ++l) {
      // What the innermost of the outer loops does not move stays.
      if (l + 1 == d && !use.moves[l]) continue;
      times *= leaf.trips[l];
    }
    bytes += times * use.footprint[d] * (use.writes ? 1.5 : 1);
  }
  return bytes;
}

double ComputeCycles(const LeafCount& leaf, int lanes) {
  if (leaf.elements > 0) {
    const bool contiguous = leaf.uses.front().footprint.back() < leaf.uses.front().bytes * 2.5;
    return leaf.executions *
           (kTileCall +
            leaf.elements * (contiguous ? kCopyPerVector / lanes + 0.12 : kCopyPerElement));
  }
  double cycles = kTileCall + leaf.accumulators * 3;
  if (leaf.depth > 0) {
    const double fmas = leaf.vector_fmas / leaf.depth,
                 loads = (leaf.vector_loads + leaf.broadcasts) / leaf.depth;
    const double per_step = std::max({fmas / kFmasPerCycle, loads / kLoadsPerCycle, kFmaLatency,
                                      (fmas + loads + 2) / kIssuePerCycle});
    cycles += per_step * leaf.depth + (leaf.dot ? leaf.accumulators * 10 : 0);
  }
  return leaf.executions * cycles;
}

}  // namespace

double PredictNanoseconds(const tile::Program& program, const DeviceFingerprint& device) {
  const tile::Counts counts = tile::Count(program, device.line_bytes > 0 ? device.line_bytes : 64);
  const double threads = std::max(1, device.threads);
  // A part of each cache is other data's.
  const Caches caches{
      0.9 * (device.l1d_bytes > 0 ? device.l1d_bytes : 32768),
      0.8 * (device.l2_bytes > 0 ? device.l2_bytes : 262144),
      0.8 * (device.l3_bytes > 0 ? device.l3_bytes : 2097152) / std::max(1, device.l3_sharing)};
  double cycles = 0;
  for (const StepCount& step : counts.steps) {
    if (step.kind == tile::StepKind::kPrepack || step.blocks == 0) continue;
    double work = 0;
    for (const LeafCount& leaf : step.leaves) {
      const int lanes = std::max(1, device.vector_bits / 32);
      const double memory =
          Traffic(step, leaf, caches.l3) * kFromMemory *
          (1 + kMemorySharing * (std::min(threads, static_cast<double>(step.blocks)) - 1));
      work += ComputeCycles(leaf, lanes) + Traffic(step, leaf, caches.l1) * kFromL2 +
              Traffic(step, leaf, caches.l2) * kFromL3 + memory;
    }
    const double blocks = static_cast<double>(step.blocks);
    const double rounds = std::ceil(blocks / threads);
    cycles +=
        work / blocks * rounds + kBlockStart * rounds + (threads > 1 ? kStepStart : kStepAlone);
  }
  return cycles / kGigahertz;
}

}  // namespace kiln::compiler::model
