// SPDX-License-Identifier: Apache-2.0
// Who wins among plans that were measured in the same rounds. Near ties decide most contests, so
// the rule is fixed: those within the tie band of the best are equal, and equals are ordered by
// what does not change from run to run. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "worker/measure/statistics.h"

namespace kiln::worker {

struct Entrant {
  std::string schedule;  // canonical text
  bool incumbent = false;
  bool library = false;  // the vendor's routine: among equals, one's own kernel is preferred
  bool eligible = true;  // may win; the baseline of a workload that forbids libraries may not
  std::vector<double> rounds_ns;  // time per call in each round; 0 where it has none
};

struct ContestResult {
  int winner = -1;               // index; -1: nobody is eligible
  std::vector<int> ties;         // eligible ones within the tie band of the fastest, winner first
  std::vector<double> standing;  // per entrant: median over rounds of its time over the round's
                                 // mean time; 0 without rounds
};

inline constexpr double kTieBand = 0.02;
inline constexpr double kWidestTieBand =
    0.05;  // on a noisy machine: noise makes no equals of what is far apart
inline constexpr double kSignificance = 0.05;

// Entrant a is within the tie band of b: the paired ratio says no more than 2 %, or no more than
// its own interval, up to 5 %.
bool Ties(const Entrant& a, const Entrant& b);

ContestResult Decide(const std::vector<Entrant>& entrants);

// Whether `winner` may replace `incumbent`: faster in the paired rounds by more than the tie band,
// and not by luck.
bool Beats(const Entrant& winner, const Entrant& incumbent);

}  // namespace kiln::worker
