// SPDX-License-Identifier: Apache-2.0
#include "worker/measure/contest.h"

#include <algorithm>
#include <cmath>
#include <tuple>

namespace kiln::worker {
namespace {

// By this order equals are told apart.
auto Rank(const Entrant& entrant) {
  return std::make_tuple(!entrant.incumbent, entrant.library, entrant.schedule);
}

// Geometric mean over those that ran in the round, so that drift from round to round falls out of
// every ratio to it.
double RoundMean(const std::vector<Entrant>& entrants, size_t round) {
  double sum = 0;
  int count = 0;
  for (const Entrant& entrant : entrants) {
    if (round < entrant.rounds_ns.size() && entrant.rounds_ns[round] > 0) {
      sum += std::log(entrant.rounds_ns[round]);
      ++count;
    }
  }
  return count > 0 ? std::exp(sum / count) : 0;
}

}  // namespace

bool Ties(const Entrant& a, const Entrant& b) {
  const PairedRatio ratio = Compare(a.rounds_ns, b.rounds_ns);  // above 1: a is faster
  if (ratio.rounds == 0) return false;
  const double band =
      std::clamp((ratio.hi - ratio.lo) / 2 / ratio.median, kTieBand, kWidestTieBand);
  return ratio.median >= 1 - band;
}

ContestResult Decide(const std::vector<Entrant>& entrants) {
  ContestResult result;
  size_t rounds = 0;
  for (const Entrant& entrant : entrants) rounds = std::max(rounds, entrant.rounds_ns.size());
  std::vector<double> means;
  for (size_t round = 0; round < rounds; ++round) means.push_back(RoundMean(entrants, round));
  int fastest = -1;
  for (const Entrant& entrant : entrants) {
    std::vector<double> shares;
    for (size_t round = 0; round < entrant.rounds_ns.size(); ++round) {
      if (entrant.rounds_ns[round] > 0) shares.push_back(entrant.rounds_ns[round] / means[round]);
    }
    result.standing.push_back(Median(std::move(shares)));
    const int index = static_cast<int>(result.standing.size()) - 1;
    if (!entrant.eligible || result.standing[index] <= 0) continue;
    if (fastest < 0 || result.standing[index] < result.standing[fastest]) fastest = index;
  }
  if (fastest < 0) return result;
  for (int i = 0; i < static_cast<int>(entrants.size()); ++i) {
    if (!entrants[i].eligible || result.standing[i] <= 0) continue;
    if (i == fastest || Ties(entrants[i], entrants[fastest])) result.ties.push_back(i);
  }
  std::sort(result.ties.begin(), result.ties.end(),
            [&](int a, int b) { return Rank(entrants[a]) < Rank(entrants[b]); });
  result.winner = result.ties.front();
  return result;
}

bool Beats(const Entrant& winner, const Entrant& incumbent) {
  const PairedRatio ratio = Compare(winner.rounds_ns, incumbent.rounds_ns);
  return ratio.p < kSignificance && !Ties(incumbent, winner);
}

}  // namespace kiln::worker
