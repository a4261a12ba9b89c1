// SPDX-License-Identifier: Apache-2.0
// The contraction family: C = epilogue(A * B) in f32 and f64 on CPUs, blocked, packed or direct.
// Stateless.
#pragma once

#include "worker/compiler/families/family.h"

namespace kiln::compiler {

const Family* ContractionFamily();

}  // namespace kiln::compiler
