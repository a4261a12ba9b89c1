// SPDX-License-Identifier: Apache-2.0
// The policy's narrower accumulators, applied to the nodes of the outputs that it names.
#pragma once

#include "absl/status/status.h"
#include "proto/contract/language/build.h"
#include "proto/contract/spec.h"

namespace kiln::language {

// INVALID_ARGUMENT names the field "policy.accumulate.C" whose name is no output, whose type is no
// accumulator or which would change nothing.
absl::Status ApplyAccumulators(const Policy& policy, const Scope& scope, Built* built);

}  // namespace kiln::language
