// SPDX-License-Identifier: Apache-2.0
#include "client/runtime/error.h"

#include <cstdarg>
#include <cstdio>

namespace kiln::runtime {
namespace {

thread_local char last_error[1024] = "";

}  // namespace

kiln_code Fail(kiln_code code, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(last_error, sizeof(last_error), format, arguments);
  va_end(arguments);
  return code;
}

}  // namespace kiln::runtime

extern "C" const char* kiln_error(void) { return kiln::runtime::last_error; }
