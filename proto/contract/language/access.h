// SPDX-License-Identifier: Apache-2.0
// LANGUAGE.md section 4: can a read fall outside its tensor, can a range be empty?
#pragma once

#include "proto/contract/language/scope.h"

namespace kiln::language {

// Checks all accesses of the resolved, unpoisoned statements. Writes Expr::always_inside. Reports
// reads without `else` that can fall outside and avg, argmax, argmin over ranges that may be empty.
void CheckAccesses(Scope* scope);

}  // namespace kiln::language
