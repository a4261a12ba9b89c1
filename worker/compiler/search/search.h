// SPDX-License-Identifier: Apache-2.0
// Search in two calls: Propose a batch, Observe what became of it. Decides only; never measures,
// never reads a clock. Same seed and same observations: same proposals, on any machine.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "proto/contract/outcome.h"
#include "proto/contract/schedule.h"
#include "worker/compiler/families/family.h"

namespace kiln::compiler {

struct SearchOptions {
  uint64_t seed = 0;
  int max_trials = 200;
  std::vector<Schedule> seeds;    // tried first: the incumbent, neighbours, the default
  std::vector<Outcome> known;     // of earlier jobs under the same toolchain: not measured again
  std::vector<Schedule> blocked;  // never proposed
};

class Search {
 public:
  virtual ~Search() = default;
  // At most `count` schedules that were not proposed before; fewer near the end; empty: done (see
  // StopReason).
  virtual std::vector<Schedule> Propose(int count) = 0;
  // Of every proposed schedule, once, in any order.
  virtual void Observe(const Outcome& outcome) = 0;
  // "trials", "space exhausted", "more would not pay"; empty while it goes on.
  virtual std::string StopReason() const = 0;
};

// Model-ranked start, then evolution around the best ones; `predict` ranks (nanoseconds; failures
// to predict rank last).
// `space` must outlive the search.
std::unique_ptr<Search> MakeSearch(const Space& space, const SearchOptions& options,
                                   std::function<double(const Schedule&)> predict);

}  // namespace kiln::compiler
