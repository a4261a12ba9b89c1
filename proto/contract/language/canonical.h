// SPDX-License-Identifier: Apache-2.0
// The canonical text of a workload: what its signature is the hash of (LANGUAGE.md section 7).
// Changing a byte of it for any workload disowns stored records: it needs another version in the
// "kiln/1" that is hashed before it.
#pragma once

#include <string>

#include "proto/contract/graph.h"
#include "proto/contract/spec.h"

namespace kiln::language {

// One line per dynamic dim (d0 1..4096), tensor (t0 input f32 [512,512] align 16), node (n0 f32 mul
// ...) and policy; no names, no locale.
std::string CanonicalText(const Graph& graph, const Policy& policy);

}  // namespace kiln::language
