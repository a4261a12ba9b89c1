// SPDX-License-Identifier: Apache-2.0
// Numbers as C++ text, bit for bit, whatever the process's locale. Pure.
#pragma once

#include <string>

#include "proto/contract/dtype.h"

namespace kiln::compiler::emit {

// A literal of type float or double (kF32, kF64; `value` is rounded to it): a hexadecimal float, a
// builtin for infinities and NaN.
std::string FloatLiteral(DType type, double value);

}  // namespace kiln::compiler::emit
