// SPDX-License-Identifier: Apache-2.0
// A total order on schedules, so that the search's sets and ties come out the same everywhere.
#pragma once

#include <map>
#include <set>
#include <tuple>

#include "proto/contract/schedule.h"

namespace kiln::compiler {

struct ScheduleLess {
  bool operator()(const Schedule& a, const Schedule& b) const {
    return std::tie(a.family, a.version, a.knobs) < std::tie(b.family, b.version, b.knobs);
  }
};

using ScheduleSet = std::set<Schedule, ScheduleLess>;
template <typename T>
using ScheduleMap = std::map<Schedule, T, ScheduleLess>;

}  // namespace kiln::compiler
