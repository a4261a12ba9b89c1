// SPDX-License-Identifier: Apache-2.0
// LANGUAGE.md section 6: strides, alignment and aliasing of the request, and the size of the
// address range.
#pragma once

#include "absl/status/status.h"
#include "proto/contract/graph.h"
#include "proto/contract/spec.h"

namespace kiln::language {

// Writes strides, packed, alignment and alias_of of the graph's tensors. INVALID_ARGUMENT names the
// field
// ("strides.A", "alignment.A", "alias.y", "dims") whose value is not possible, and what is.
absl::Status ApplyMemory(const WorkloadSpec& spec, Graph* graph);

}  // namespace kiln::language
