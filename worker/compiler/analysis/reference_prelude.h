// SPDX-License-Identifier: Apache-2.0
// The fixed beginning of every reference: number formats, the language's arithmetic in f64, error
// bounds, threads.
#pragma once

namespace kiln::compiler {

extern const char kReferencePrelude[];

}  // namespace kiln::compiler
