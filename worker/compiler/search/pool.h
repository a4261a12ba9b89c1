// SPDX-License-Identifier: Apache-2.0
// What a search chooses from before it has measured anything: the whole space if it is small, else
// a large sample that is improved by the model. Pure.
#pragma once

#include <cstdint>
#include <vector>

#include "worker/compiler/families/family.h"
#include "worker/compiler/search/random.h"
#include "worker/compiler/search/ranking.h"

namespace kiln::compiler {

struct Pool {
  std::vector<Schedule> ranked;  // legal, distinct, best predicted first
  bool whole = false;            // every legal schedule is in it
};

Pool MakePool(const Space& space, Ranking* ranking, SplitMix64* random);

// The first `count` of `ranked` that lie apart from each other: two of them differ in a third of
// the knobs, and in two at least, while there are enough such. A start that is one schedule in ten
// spellings learns nothing where the model errs.
std::vector<Schedule> PickApart(const std::vector<Schedule>& ranked, size_t count);

// Number of knobs in which they differ.
int Distance(const Schedule& a, const Schedule& b);

}  // namespace kiln::compiler
