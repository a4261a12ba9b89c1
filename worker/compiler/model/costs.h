// SPDX-License-Identifier: Apache-2.0
// What device fingerprints do not carry: costs of an out-of-order core of the last ten years, in
// cycles unless said otherwise. Where instruction tables give them (Agner Fog's, Haswell to Zen 4;
// Arm's guides, Cortex-A76 to Neoverse V1) they are taken from there; the rest is fitted to trials
// by tests/bench/kernels/fit_costs.
#pragma once

namespace kiln::compiler::model {

struct Costs {
  double gigahertz = 3.0;
  double fmas_per_cycle = 2, loads_per_cycle = 2, issued_per_cycle = 2.9;
  double fma_latency = 4;
  double tile_call = 5;         // call, prologue, loop exit (mispredicted half of the time)
  double tile_transfer = 0.86;  // a register of sums that is joined or stored
  double dot_total = 4;         // adding up the lanes of a register
  double block_start = 600;     // taking a block from the pool
  double step_start = 6000;     // waking threads, and waiting for the last one
  double step_alone = 200;      // one thread
  double copy_element = 1.6;    // packing of strided elements, one by one
  double copy_vector = 0.23;    // load, store, addresses
  // Cycles per byte, from each level to the next.
  double from_l2 = 1.0 / 19.2, from_l3 = 1.0 / 15.9, from_memory = 1.0 / 5.5;
  double write_back = 0.11;    // traffic of what is also written
  double jump_bytes = 330;     // as many bytes of memory would be read in a row during a jump
  double longest_jump = 0.63;  // times the time of a line: its latency, as far as it shows
  double l3_jump_bytes = 62, l3_longest_jump = 12;  // the same, in the third level of cache
  double overlap = 5.1, memory_overlap = 1.3;  // exponents: of the core and its caches; with memory
  double memory_sharing = 0.6;  // how much one more thread adds to each one's memory traffic
};

}  // namespace kiln::compiler::model
