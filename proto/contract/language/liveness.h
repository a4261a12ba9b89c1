// SPDX-License-Identifier: Apache-2.0
// Which temporaries matter, and which of them are tensors of their own.
#pragma once

#include "proto/contract/language/scope.h"

namespace kiln::language {

// Writes TensorSymbol::live (an output depends on it) and stays: everything declared, typed
// temporaries, and untyped ones that a live statement reads in another way than through distinct
// lone variables without `else`. Runs after CheckAccesses, since an `else` that is never used does
// not count.
void FindLive(Scope* scope);

}  // namespace kiln::language
