// SPDX-License-Identifier: Apache-2.0
// The schedule for those who do not search: by shape, always legal.
#include <algorithm>

#include "worker/compiler/families/contraction/space.h"

namespace kiln::compiler::contraction {
namespace {

using tile::CeilDiv;

// The largest value of the knob that is at most `wanted`, else its smallest.
int64_t AtMost(const std::vector<Knob>& knobs, const std::string& name, int64_t wanted) {
  for (const Knob& knob : knobs) {
    if (knob.name != name) continue;
    int64_t best = knob.values.front();
    for (int64_t value : knob.values) {
      if (value <= wanted) best = value;
    }
    return best;
  }
  return 1;
}

}  // namespace

Schedule ContractionSpace::MakeDefault() const {
  const Problem& p = straight_;
  const int64_t m = std::max<int64_t>(1, p.row.extent), n = std::max<int64_t>(1, p.column.extent),
                k = p.depth.extent;
  const bool unit_columns = p.column.b == 1 || n == 1;
  const bool unit_depth = p.depth.a == 1 && p.depth.b == 1 && k >= limits_.lanes;
  const bool small = p.Flops() / std::max<int64_t>(1, p.OuterCount()) <= 2.0 * 64 * 64 * 64;
  const bool thin = m <= 8;
  std::map<std::string, int64_t> knobs{{"acc", 0}, {"bb", 1},  {"order", 0}, {"pa", 0},
                                       {"pb", 0},  {"pf", 0},  {"split", 1}, {"unroll", 4},
                                       {"vec", 0}, {"walk", 0}};
  auto set = [&](const std::string& name, int64_t wanted) {
    knobs[name] = AtMost(knobs_, name, wanted);
  };
  const int64_t rows = limits_.registers == 32 ? 12 : 6;
  set("mr", std::min(m, rows));
  set("nv", std::min<int64_t>(2, CeilDiv(n, limits_.lanes)));
  set("mc", m);
  set("nc", n);
  set("kc", k);
  if (thin && unit_depth && !unit_columns && !p.fixed_order) {
    // Rows of b against the few rows of a, each read once along its memory.
    knobs["vec"] = 2;
    set("nv", std::max<int64_t>(1, std::min(n, (limits_.registers - 1) / (knobs["mr"] + 1))));
    set("nc", std::max<int64_t>(32, n / (4 * limits_.threads)));
  } else if (thin && unit_columns) {
    // b streams through once, a few whole rows of it at a time and whole lines of each; the sums
    // stay in scratch, within half of the second level.
    set("mr", m <= 6 ? m : 4);
    set("nv", std::min(CeilDiv(n, limits_.lanes), m <= 2 ? int64_t{4} : 2));
    set("kc", m == 1 ? 16 : 8);
    const int64_t sums = limits_.l2_bytes / 2 / (m * Bits(p.type) / 8);
    set("nc", std::max<int64_t>(limits_.lanes * 8, std::min(CeilDiv(n, limits_.threads), sums)));
    knobs["acc"] = knobs["kc"] < k ? 1 : 0;
    knobs["pa"] = m > 1 ? 2 : 0;
  } else if (small && unit_columns) {
    set("mc", m);
  } else if (k > 0) {
    knobs["pa"] = m > 2 * rows ? 1 : 0;
    knobs["pb"] = 2;
    knobs["pf"] = 2;
    set("kc", 512);
    // As many rows as half of the second level holds beside b's panels, in equal blocks for the
    // threads.
    const int64_t bytes = Bits(p.type) / 8;
    const int64_t fit = std::max<int64_t>(
        rows, limits_.l2_bytes * 3 / 5 / (bytes * std::max<int64_t>(1, knobs["kc"])));
    const int64_t blocks =
        CeilDiv(CeilDiv(m, std::min<int64_t>(fit, 192)), limits_.threads) * limits_.threads;
    set("mc", std::max<int64_t>(rows, CeilDiv(m, blocks) + rows - 1));
    if (m <= 512 && !p.b_constant) {
      // One block of rows: packing b beside its use costs less than a pass over memory. The fewer
      // the rows, the more packing costs, and the longer the pieces that it reads should be.
      set("mc", m);
      set("kc", m <= 128 ? 128 : 256);
      const int64_t wide = limits_.l2_bytes * (m <= 128 ? 8 : 3) / 8 / (bytes * knobs["kc"]);
      set("nc", std::max<int64_t>(64, std::min<int64_t>(wide, n / (2 * limits_.threads))));
      knobs["pa"] = m <= 128 || p.depth.a != 1 ? 2 : 0;
      knobs["pb"] = 1;
      knobs["pf"] = 0;
    } else if (m <= rows * 4) {
      set("nc", std::max<int64_t>(64, n / (4 * limits_.threads)));
    }
  }
  if (!p.outer.empty() && small)
    set("bb",
        std::max<int64_t>(
            1, static_cast<int64_t>(
                   100000 / std::max(1.0, p.Flops() / std::max<int64_t>(1, p.OuterCount())))));
  Schedule schedule{"contraction", 1, knobs};
  if (Check(schedule).ok()) return schedule;
  // The plainest kernel: nothing is blocked, b is packed if its lanes are not neighbours. Legal for
  // every problem.
  schedule.knobs = {
      {"acc", 0}, {"bb", 1},    {"order", 0},  {"pa", 0},  {"pb", unit_columns || k == 0 ? 0 : 2},
      {"pf", 0},  {"split", 1}, {"unroll", 1}, {"vec", 0}, {"walk", 0},
      {"mr", 1},  {"nv", 1}};
  for (const char* name : {"mc", "nc", "kc"})
    schedule.knobs[name] = AtMost(knobs_, name, name[0] == 'm' ? m : name[0] == 'n' ? n : k);
  return schedule;
}

}  // namespace kiln::compiler::contraction
