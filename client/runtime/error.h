// SPDX-License-Identifier: Apache-2.0
// The text of the last error on this thread, as kiln_error() gives it. No allocation: it is set on
// launch paths too.
#pragma once

#include "client/runtime/kiln_runtime.h"

namespace kiln::runtime {

// Stores the text (cut at 1 KiB) and returns `code`.
kiln_code Fail(kiln_code code, const char* format, ...) __attribute__((format(printf, 2, 3)));

}  // namespace kiln::runtime
