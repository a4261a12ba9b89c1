// SPDX-License-Identifier: Apache-2.0
// Which integer inputs say where other tensors are read, and what they may hold. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "proto/contract/graph.h"

namespace kiln::verify {

struct IndexRole {
  int64_t least = 0, greatest = 0;  // valid values, both included
  bool ascending = false;           // bounds of ranges: row pointers must not descend
};

// By tensor; nothing for those that no subscript or bound depends on.
std::vector<std::optional<IndexRole>> FindIndexRoles(const Graph& graph);

}  // namespace kiln::verify
