// SPDX-License-Identifier: Apache-2.0
// Which free variable of a reduction the reference loops over innermost: one along which memory is
// contiguous, so that the compiler can use vectors without reordering any sum. Pure.
#pragma once

#include "worker/compiler/analysis/reference_body.h"

namespace kiln::compiler {

// A free variable of the kept reduction, or -1: none will do, and partial sums run side by side.
int ChooseInner(const ReferenceScene& scene, NodeId reduction);

}  // namespace kiln::compiler
