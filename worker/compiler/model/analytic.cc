// SPDX-License-Identifier: Apache-2.0
#include "worker/compiler/model/analytic.h"

#include <algorithm>
#include <cmath>
#include <initializer_list>

#include "worker/compiler/tile/counts.h"

namespace kiln::compiler::model {
namespace {

using tile::LeafCount;
using tile::StepCount;
using tile::UseCount;

// Of the first level, which virtual addresses index: pages of 4 KiB on x86-64 and arm64 servers.
constexpr double kFirstWayBytes = 4096;
// Of the second level, on most cores.
constexpr double kSecondWayBytes = 65536;
constexpr double kLineBytes = 64;

// way_bytes 0: so many ways that none runs out.
struct Cache {
  double bytes, way_bytes;
};

struct Caches {
  Cache first, second, third;
};

bool Fits(const UseCount& use, size_t depth, const Cache& cache) {
  if (cache.way_bytes == 0) return true;
  const double ways =
      use.boxes[std::min(depth, use.boxes.size() - 1)].Ways(cache.way_bytes, kLineBytes);
  return ways <= std::max(1.0, cache.bytes / cache.way_bytes);
}

// The outermost loop depth such that everything inside one of its iterations fits; one more than
// there are loops, where not even the innermost iteration does.
size_t FittingDepth(const StepCount& step, const LeafCount& leaf, const Cache& cache) {
  for (size_t d = 0; d <= leaf.loops.size(); ++d) {
    double total = 0;
    bool fits = true;
    for (const LeafCount& other : step.leaves) {
      // Leaves that share the d outermost loops share the cache; the others run at another time.
      const bool together =
          other.loops.size() >= d &&
          std::equal(leaf.loops.begin(), leaf.loops.begin() + static_cast<std::ptrdiff_t>(d),
                     other.loops.begin());
      if (!together) continue;
      for (const UseCount& use : other.uses) {
        total += use.footprint[std::min(d, use.footprint.size() - 1)] * (&other == &leaf ? 1 : 0.5);
        if (&other == &leaf) fits &= Fits(use, d, cache);
      }
    }
    // A part of each cache is other data's.
    if (fits && total <= 0.9 * cache.bytes) return d;
  }
  return leaf.loops.size() + 1;
}

// Bytes that a leaf moves into a cache from the level behind it, over the whole step; a jump in
// that level costs as much as `jump` bytes, at most `longest` times the line's own time. Places
// that a tile stores to are asked for ahead.
double Traffic(const StepCount& step, const LeafCount& leaf, const Cache& cache, double write_back,
               double jump, double longest) {
  const size_t d = FittingDepth(step, leaf, cache);
  if (d == 0) return 0;  // there since the launch before
  double bytes = 0;
  for (const UseCount& use : leaf.uses) {
    double fetches = 1;
    for (size_t l = 0; l < std::min(d, leaf.trips.size()); ++l) {
      // What fits stays while the innermost of the loops around it does not move it.
      if (l + 1 != d || use.moves[l]) fetches *= leaf.trips[l];
    }
    const double jumps =
        use.writes ? 0 : std::min(longest, jump / std::max(kLineBytes, use.run_bytes));
    bytes += fetches * use.footprint[std::min(d, leaf.loops.size())] *
             (use.writes ? write_back : 1) * (1 + jumps);
  }
  return bytes;
}

double ComputeCycles(const LeafCount& leaf, int lanes, const Costs& costs) {
  if (leaf.elements > 0) {
    const bool contiguous = leaf.uses.front().footprint.back() < leaf.uses.front().bytes * 2.5;
    return leaf.executions *
           (costs.tile_call +
            leaf.elements * (contiguous ? costs.copy_vector / lanes + 0.12 : costs.copy_element));
  }
  const size_t operands = leaf.depth > 0 ? 2 : 0;
  double cycles = costs.tile_call + leaf.accumulators * costs.tile_transfer *
                                        static_cast<double>(leaf.uses.size() - operands);
  if (leaf.depth > 0) {
    const double fmas = leaf.vector_fmas / leaf.depth,
                 loads = (leaf.vector_loads + leaf.broadcasts) / leaf.depth;
    const double per_step =
        std::max({fmas / costs.fmas_per_cycle, loads / costs.loads_per_cycle, costs.fma_latency,
                  (fmas + loads + 2) / costs.issued_per_cycle});
    cycles += per_step * leaf.depth + (leaf.dot ? leaf.accumulators * costs.dot_total : 0);
  }
  return leaf.executions * cycles;
}

// The time of things that overlap: wholly at an exponent of infinity, not at all at 1.
double Norm(double exponent, std::initializer_list<double> cycles) {
  double sum = 0;
  for (double c : cycles) sum += std::pow(c, exponent);
  return std::pow(sum, 1 / exponent);
}

}  // namespace

double PredictNanoseconds(const tile::Program& program, const DeviceFingerprint& device,
                          const Costs& costs) {
  const tile::Counts counts = tile::Count(program, device.line_bytes > 0 ? device.line_bytes : 64);
  const double threads = std::max(1, device.threads);
  const double third = device.l3_bytes > 0 ? device.l3_bytes : 2097152;
  const Caches caches{{device.l1d_bytes > 0 ? device.l1d_bytes * 1.0 : 32768, kFirstWayBytes},
                      {device.l2_bytes > 0 ? device.l2_bytes * 1.0 : 262144, kSecondWayBytes},
                      {third / std::max(1, device.l3_sharing), 0}};
  const int lanes = std::max(1, device.vector_bits / 32);
  double cycles = 0;
  for (const StepCount& step : counts.steps) {
    if (step.kind == tile::StepKind::kPrepack || step.blocks == 0) continue;
    const double blocks = static_cast<double>(step.blocks);
    const double sharing = 1 + costs.memory_sharing * (std::min(threads, blocks) - 1);
    double near = 0, far = 0;  // cycles of the core and its caches, and of memory
    for (const LeafCount& leaf : step.leaves) {
      near += Norm(costs.overlap,
                   {ComputeCycles(leaf, lanes, costs),
                    Traffic(step, leaf, caches.first, costs.write_back, 0, 0) * costs.from_l2,
                    Traffic(step, leaf, caches.second, costs.write_back, costs.l3_jump_bytes,
                            costs.l3_longest_jump) *
                        costs.from_l3});
      far += Traffic(step, leaf, caches.third, costs.write_back, costs.jump_bytes,
                     costs.longest_jump) *
             costs.from_memory * sharing;
    }
    const double work = Norm(costs.memory_overlap, {near, far});
    const double rounds = std::ceil(blocks / threads);
    cycles += work / blocks * rounds + costs.block_start * rounds +
              (threads > 1 ? costs.step_start : costs.step_alone);
  }
  return cycles / costs.gigahertz;
}

}  // namespace kiln::compiler::model
