// SPDX-License-Identifier: Apache-2.0
// The first half of what names mean: the dims of the head with the values that the request binds,
// and the declared tensors with their types and extents.
#pragma once

#include "absl/status/status.h"
#include "proto/contract/language/scope.h"
#include "proto/contract/spec.h"

namespace kiln::language {

// Fills scope->dims and makes scope->affine. INVALID_ARGUMENT names the field ("dims.M") that is
// missing, unknown or out of range, or says that the head names a dim twice.
absl::Status BindDims(const WorkloadSpec& spec, Scope* scope);

// Fills scope->tensors with the declared ones. Errors of the text go to the diagnostics;
// INVALID_ARGUMENT names a field "types.A" that contradicts the text or names no declared tensor.
absl::Status DeclareTensors(const WorkloadSpec& spec, Scope* scope);

}  // namespace kiln::language
