// SPDX-License-Identifier: Apache-2.0
// Whether a tile program is one at all: every number that names something names something that is
// there, every loop that a view follows is around it, arguments come before users. The other checks
// and the printers take that for granted. Pure.
#pragma once

#include "absl/status/status.h"
#include "worker/compiler/tile/program.h"

namespace kiln::compiler::tile {

// Memory of every level but kGlobal starts at a multiple of so many bytes.
inline constexpr int64_t kLevelAlignment = 64;

// INTERNAL with the step, what is malformed and the numbers.
absl::Status CheckShape(const Program& program);

}  // namespace kiln::compiler::tile
