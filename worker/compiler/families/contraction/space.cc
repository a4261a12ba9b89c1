// SPDX-License-Identifier: Apache-2.0
#include "worker/compiler/families/contraction/space.h"

#include <algorithm>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace kiln::compiler::contraction {
namespace {

using tile::CeilDiv;

absl::Status Illegal(absl::string_view why) { return absl::FailedPreconditionError(why); }

// Those of `values` below the larger of two extents, and the extents themselves (at least 1);
// ascending.
std::vector<int64_t> UpTo(int64_t x, int64_t y, const std::vector<int64_t>& values) {
  std::set<int64_t> kept{std::max<int64_t>(1, x), std::max<int64_t>(1, y)};
  for (int64_t value : values) {
    if (value < std::max(x, y)) kept.insert(value);
  }
  return {kept.begin(), kept.end()};
}

// Settings, legal or not, up to which they are counted one by one: some 100 ms.
constexpr double kMostCounted = 100000;

int64_t RoundUp(int64_t value, int64_t to) { return CeilDiv(value, to) * to; }

uint64_t Mix(uint64_t& state) {  // splitmix64
  uint64_t z = (state += 0x9e3779b97f4a7c15);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

// Lanes can be loaded at once.
bool Unit(int64_t stride, int64_t extent) { return stride == 1 || extent <= 1; }

}  // namespace

ContractionSpace::ContractionSpace(const Workload& workload, const ContractionForm& form,
                                   const DeviceFingerprint& device)
    : straight_(MakeProblem(workload, form, false)),
      swapped_(MakeProblem(workload, form, true)),
      limits_(LimitsOf(device, form.type)) {
  MakeKnobs();
  default_ = MakeDefault();
}

void ContractionSpace::MakeKnobs() {
  const int64_t m = straight_.row.extent, n = straight_.column.extent, k = straight_.depth.extent;
  const int64_t longest = std::max(m, n);
  const std::vector<int64_t> blocks{8,   16,  32,  48,  64,  72,   96,   120,  144, 192,
                                    240, 288, 384, 512, 768, 1024, 2048, 4096, 8192};
  std::vector<int64_t> rows;
  for (int64_t r = 1; r <= std::min<int64_t>(longest, limits_.registers == 32 ? 14 : 8); ++r)
    rows.push_back(r);
  if (rows.empty()) rows.push_back(1);
  std::vector<int64_t> outer_groups{1};
  if (!straight_.outer.empty())
    outer_groups =
        UpTo(straight_.outer.back().extent, 1, {1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024});
  if (outer_groups.size() > 1 && outer_groups.back() > 1024) outer_groups.pop_back();
  std::vector<int64_t> splits{1};
  for (int64_t s = 2; s <= 64 && s * 16 <= k && !straight_.fixed_order; s *= 2) splits.push_back(s);
  knobs_ = {
      {"acc", {0, 1}, "between passes over the depth sums rest: 0 in the output, 1 in scratch"},
      {"bb", outer_groups, "iterations of the innermost batch loop in one block"},
      {"kc", UpTo(k, k, {4, 8, 16, 32, 64, 128, 192, 256, 320, 384, 512, 768, 1024, 2048, 4096}),
       "depth of a cache block"},
      {"mc", UpTo(m, n, blocks), "rows of a cache block"},
      {"mr", rows, "rows of the register tile"},
      {"nc", UpTo(m, n, blocks), "columns of a cache block"},
      {"nv", {1, 2, 3, 4, 6, 8}, "vectors (with vec=2: columns) of the register tile"},
      {"order", {0, 1}, "inside a block: 0 walks columns outside, rows inside; 1 the reverse"},
      {"pa",
       {0, 1, 2},
       "packing of the broadcast operand: 0 none, 1 by each block into scratch, 2 whole, in a step "
       "of its own"},
      {"pb", {0, 1, 2}, "packing of the vector operand, likewise"},
      {"pf",
       {0, 1, 2},
       "prefetch of the next packed panel: 0 none, 1 to the first level of cache, 2 to the second"},
      {"split", splits, "parts of the depth that are summed apart, by different blocks"},
      {"unroll", {1, 2, 4, 8}, "of the product's loop"},
      {"vec", straight_.fixed_order ? std::vector<int64_t>{0, 1} : std::vector<int64_t>{0, 1, 2},
       "lanes along: 0 columns, 1 rows, 2 depth"},
      {"walk", {0, 1}, "blocks are numbered: 0 rows first, 1 columns first"},
  };
}

Knobs ContractionSpace::Read(const Schedule& schedule) const {
  const auto& k = schedule.knobs;
  Knobs knobs;
  knobs.lanes = static_cast<Lanes>(k.at("vec"));
  const Problem& p = problem(knobs.lanes);
  knobs.mr = std::min(k.at("mr"), std::max<int64_t>(1, p.row.extent));
  knobs.nr = k.at("nv") * (knobs.lanes == Lanes::kDepth ? 1 : limits_.lanes);
  knobs.mc = RoundUp(std::min(k.at("mc"), std::max<int64_t>(1, p.row.extent)), knobs.mr);
  knobs.nc = RoundUp(std::min(k.at("nc"), std::max<int64_t>(1, p.column.extent)), knobs.nr);
  knobs.kc = std::min(k.at("kc"), std::max<int64_t>(1, p.depth.extent));
  knobs.pack_a = static_cast<Pack>(k.at("pa"));
  knobs.pack_b = static_cast<Pack>(k.at("pb"));
  knobs.rows_outside = k.at("order") == 1;
  knobs.sums_in_scratch = k.at("acc") == 1;
  knobs.columns_first = k.at("walk") == 1;
  knobs.unroll = k.at("unroll");
  knobs.split = k.at("split");
  knobs.prefetch = k.at("pf");
  knobs.group = k.at("bb");
  return knobs;
}

absl::Status ContractionSpace::CheckShape(const Schedule& schedule) const {
  if (schedule.family != "contraction" || schedule.version != 1) {
    return absl::InvalidArgumentError(absl::StrCat("schedule of family ", schedule.family, "/",
                                                   schedule.version, "; expected contraction/1"));
  }
  for (const Knob& knob : knobs_) {
    auto found = schedule.knobs.find(knob.name);
    if (found == schedule.knobs.end())
      return absl::InvalidArgumentError(absl::StrCat("knob ", knob.name, " is missing"));
    if (std::find(knob.values.begin(), knob.values.end(), found->second) == knob.values.end()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "knob ", knob.name, "=", found->second, "; allowed: ", absl::StrJoin(knob.values, " ")));
    }
  }
  if (schedule.knobs.size() != knobs_.size()) {
    for (const auto& [name, value] : schedule.knobs) {
      if (std::none_of(knobs_.begin(), knobs_.end(),
                       [name = name](const Knob& knob) { return knob.name == name; })) {
        return absl::InvalidArgumentError(absl::StrCat("contraction/1 has no knob ", name));
      }
    }
  }
  return absl::OkStatus();
}

absl::Status ContractionSpace::Check(const Schedule& schedule) const {
  if (absl::Status s = CheckShape(schedule); !s.ok()) return s;
  const auto& k = schedule.knobs;
  const Lanes lanes = static_cast<Lanes>(k.at("vec"));
  const Problem& p = problem(lanes);
  // One spelling for one kernel: values beyond the problem's extents are not offered twice.
  const int64_t m = std::max<int64_t>(1, p.row.extent), n = std::max<int64_t>(1, p.column.extent);
  if (k.at("mr") > m)
    return Illegal(absl::StrCat("a register tile of ", k.at("mr"), " rows for ", m));
  if (k.at("mc") > m) return Illegal(absl::StrCat("blocks of ", k.at("mc"), " rows for ", m));
  if (k.at("nc") > n) return Illegal(absl::StrCat("blocks of ", k.at("nc"), " columns for ", n));
  const int64_t width = lanes == Lanes::kDepth ? 1 : limits_.lanes;
  if (k.at("nv") > 1 && (k.at("nv") - 1) * width >= n)
    return Illegal(absl::StrCat("a register tile of ", k.at("nv") * width, " columns for ", n));
  return CheckLimits(Read(schedule));
}

absl::Status ContractionSpace::CheckLimits(const Knobs& knobs) const {
  const Problem& p = problem(knobs.lanes);
  const bool dot = knobs.lanes == Lanes::kDepth;
  const int64_t bytes = Bits(p.type) / 8;
  const int64_t vectors = dot ? knobs.nr : knobs.nr / limits_.lanes;
  const int64_t live = knobs.mr * vectors + vectors + 1;
  if (live > limits_.registers)
    return Illegal(absl::StrCat("the register tile takes ", live, " of ", limits_.registers,
                                " vector registers"));
  if (dot) {
    if (!Unit(p.depth.a, p.depth.extent) || !Unit(p.depth.b, p.depth.extent)) {
      return Illegal("lanes along the depth need both operands contiguous along it");
    }
    if (knobs.pack_a != Pack::kNone || knobs.pack_b != Pack::kNone)
      return Illegal("lanes along the depth take operands as they are");
    if (p.depth.extent < limits_.lanes) return Illegal("the depth is shorter than a vector");
  } else if (knobs.pack_b == Pack::kNone && p.depth.extent > 0 &&
             !Unit(p.column.b, p.column.extent)) {
    return Illegal("the vector operand is not contiguous along its lanes: it has to be packed");
  }
  if (knobs.prefetch != 0 && knobs.pack_b == Pack::kNone)
    return Illegal("prefetch is of packed panels");
  if (p.depth.extent == 0 && (knobs.pack_a != Pack::kNone || knobs.pack_b != Pack::kNone))
    return Illegal("nothing to pack");
  const int64_t a_block = knobs.pack_a == Pack::kBlock ? knobs.mc * knobs.kc * bytes : 0;
  const int64_t b_block = knobs.pack_b == Pack::kBlock ? knobs.nc * knobs.kc * bytes : 0;
  if (a_block > limits_.l2_bytes) {
    return Illegal(absl::StrCat("the packed block of a takes ", a_block, " of ", limits_.l2_bytes,
                                " bytes of second-level cache"));
  }
  if (b_block > limits_.l3_bytes) {
    return Illegal(absl::StrCat("the packed block of b takes ", b_block, " of ", limits_.l3_bytes,
                                " bytes of cache"));
  }
  if (knobs.rows_outside && (knobs.mc <= knobs.mr || knobs.nc <= knobs.nr))
    return Illegal("only one order: a block has one row or one column of tiles");
  if (knobs.columns_first && (knobs.mc >= p.row.extent || knobs.nc >= p.column.extent))
    return Illegal("only one numbering: one row or one column of blocks");
  if (knobs.sums_in_scratch) {
    const int64_t part = CeilDiv(p.depth.extent, knobs.split);
    if (knobs.kc >= part && p.outer_depth.empty())
      return Illegal("one pass over the depth keeps no sums");
    const int64_t sums = knobs.mc * knobs.nc * bytes;
    if (sums > limits_.l2_bytes) {
      return Illegal(absl::StrCat("sums take ", sums, " of ", limits_.l2_bytes,
                                  " bytes of second-level cache"));
    }
  }
  if (knobs.split > 1) {
    const int64_t part = RoundUp(CeilDiv(p.depth.extent, knobs.split), knobs.kc);
    if (CeilDiv(p.depth.extent, part) != knobs.split)
      return Illegal(
          absl::StrCat("blocks of depth ", knobs.kc, " do not make ", knobs.split, " parts"));
    const double partial =
        static_cast<double>(p.row.extent) * p.column.extent * p.OuterCount() * knobs.split * bytes;
    if (partial > double{1 << 28})
      return Illegal(absl::StrCat("partial sums take ", partial, " of ", 1 << 28, " bytes"));
  }
  // Each pass over the depth reads and writes the output once more: below this, traffic is all
  // there is.
  if (knobs.kc < 64 && knobs.kc < p.depth.extent && p.row.extent > 64 && p.column.extent > 64) {
    return Illegal(absl::StrCat("passes of depth ", knobs.kc, " over a large output"));
  }
  return absl::OkStatus();
}

SpaceSize ContractionSpace::Count(int64_t limit) const {
  double settings = 1;
  for (const Knob& knob : knobs_) settings *= static_cast<double>(knob.values.size());
  return settings <= kMostCounted ? CountAll(limit) : CountBySampling(settings, limit);
}

SpaceSize ContractionSpace::CountAll(int64_t limit) const {
  std::vector<size_t> at(knobs_.size(), 0);
  Schedule schedule = default_;
  for (int64_t legal = 0;;) {
    for (size_t i = 0; i < knobs_.size(); ++i)
      schedule.knobs[knobs_[i].name] = knobs_[i].values[at[i]];
    if (Check(schedule).ok() && ++legal >= limit) return {limit, false};
    size_t i = 0;
    while (i < knobs_.size() && ++at[i] == knobs_[i].values.size()) at[i++] = 0;
    if (i == knobs_.size()) return {legal, true};
  }
}

// The share that is legal of a fixed sample, times the number of settings; at most `limit`.
SpaceSize ContractionSpace::CountBySampling(double settings, int64_t limit) const {
  constexpr int kSamples = 4000;
  Schedule schedule = default_;
  uint64_t random = 1;
  int legal = 0;
  for (int i = 0; i < kSamples; ++i) {
    for (const Knob& knob : knobs_)
      schedule.knobs[knob.name] = knob.values[Mix(random) % knob.values.size()];
    legal += Check(schedule).ok();
  }
  // The default is legal: there is one at least.
  const double estimate = std::max(1.0, settings * legal / kSamples);
  return {static_cast<int64_t>(std::min(estimate, static_cast<double>(limit))), false};
}

Schedule ContractionSpace::Sample(uint64_t random) const {
  Schedule schedule = default_;
  for (int attempt = 0; attempt < 4000; ++attempt) {
    for (const Knob& knob : knobs_)
      schedule.knobs[knob.name] = knob.values[Mix(random) % knob.values.size()];
    if (Check(schedule).ok()) return schedule;
  }
  return default_;
}

std::vector<Schedule> ContractionSpace::Neighbours(const Schedule& schedule) const {
  std::vector<Schedule> neighbours;
  for (const Knob& knob : knobs_) {
    auto here = std::find(knob.values.begin(), knob.values.end(), schedule.knobs.at(knob.name));
    if (here == knob.values.end()) continue;
    for (int by : {-1, 1}) {
      if ((by < 0 && here == knob.values.begin()) || (by > 0 && here + 1 == knob.values.end()))
        continue;
      Schedule next = schedule;
      next.knobs[knob.name] = *(here + by);
      if (Check(next).ok()) neighbours.push_back(std::move(next));
    }
  }
  return neighbours;
}

}  // namespace kiln::compiler::contraction
