// SPDX-License-Identifier: Apache-2.0
// The knobs of the contraction family and which settings are legal. Immutable, thread-safe.
#pragma once

#include <string>
#include <vector>

#include "worker/compiler/families/contraction/problem.h"
#include "worker/compiler/families/family.h"

namespace kiln::compiler::contraction {

enum class Pack : int64_t { kNone = 0, kBlock = 1, kStep = 2 };
enum class Lanes : int64_t { kColumns = 0, kRows = 1, kDepth = 2 };

// A schedule's knobs, clipped to the problem: what build and model read.
struct Knobs {
  Lanes lanes = Lanes::kColumns;
  int64_t
      mr = 1,
      nr = 1;  // register tile, in elements (nr: whole vectors where lanes run along the columns)
  int64_t mc = 1, nc = 1, kc = 1;  // block, in elements, multiples of the tile's
  Pack pack_a = Pack::kNone, pack_b = Pack::kNone;
  bool rows_outside = false;     // loop order inside a block
  bool sums_in_scratch = false;  // between passes over the depth
  bool columns_first = false;    // numbering of blocks
  int64_t unroll = 1, split = 1, prefetch = 0, group = 1;
};

class ContractionSpace : public Space {
 public:
  ContractionSpace(const Workload& workload, const ContractionForm& form,
                   const DeviceFingerprint& device);

  const std::vector<Knob>& knobs() const override { return knobs_; }
  const Schedule& default_schedule() const override { return default_; }
  absl::Status Check(const Schedule& schedule) const override;
  SpaceSize Count(int64_t limit) const override;
  Schedule Sample(uint64_t random) const override;
  std::vector<Schedule> Neighbours(const Schedule& schedule) const override;

  // The problem seen the way that the schedule vectorises it.
  const Problem& problem(Lanes lanes) const { return lanes == Lanes::kRows ? swapped_ : straight_; }
  const Limits& limits() const { return limits_; }
  // Of a schedule whose knobs are this family's.
  Knobs Read(const Schedule& schedule) const;

 private:
  void MakeKnobs();
  Schedule MakeDefault() const;
  SpaceSize CountAll(int64_t limit) const;
  SpaceSize CountBySampling(double settings, int64_t limit) const;
  absl::Status CheckShape(const Schedule& schedule) const;
  absl::Status CheckLimits(const Knobs& knobs) const;

  Problem straight_, swapped_;
  Limits limits_;
  std::vector<Knob> knobs_;
  Schedule default_;
};

}  // namespace kiln::compiler::contraction
