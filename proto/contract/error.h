// SPDX-License-Identifier: Apache-2.0
// Errors that say what, where and what is allowed. The code is absl's; beside the message travel a
// reason (SCREAMING_SNAKE, stable) and details (field, value, allowed, ...), which proto/wire turns
// into google.rpc.ErrorInfo and the CLI into its `error` object.
#pragma once

#include <map>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace kiln {

struct ErrorInfo {
  std::string reason;  // e.g. "UNBOUND_DIM", "NO_WORKER_FOR_DEVICE"
  std::map<std::string, std::string>
      details;  // "field", "value", "allowed", ...; all variable parts of the message
};

// A status with the details attached. `message` is a whole sentence: what, where, what is allowed.
absl::Status MakeError(absl::StatusCode code, absl::string_view message, ErrorInfo info);

// The common case: a field of the request holds something that it may not. INVALID_ARGUMENT; the
// message becomes "FIELD: VALUE is WHAT; allowed: ALLOWED".
absl::Status InvalidField(absl::string_view reason, absl::string_view field,
                          absl::string_view value, absl::string_view what,
                          absl::string_view allowed);

// What MakeError attached; an empty reason if nothing was.
ErrorInfo GetErrorInfo(const absl::Status& status);

// The same status with "CONTEXT: " before its message; code and details are kept.
absl::Status Annotate(const absl::Status& status, absl::string_view context);

}  // namespace kiln

// Return the error of an expression of type absl::Status, early.
#define KILN_RETURN_IF_ERROR(expr)                                                \
  do {                                                                            \
    if (absl::Status kiln_status = (expr); !kiln_status.ok()) return kiln_status; \
  } while (false)

#define KILN_CONCAT_INNER(a, b) a##b
#define KILN_CONCAT(a, b) KILN_CONCAT_INNER(a, b)
// KILN_ASSIGN_OR_RETURN(auto x, F()): x is F()'s value, or F()'s error is returned.
#define KILN_ASSIGN_OR_RETURN(lhs, expr) \
  KILN_ASSIGN_OR_RETURN_INNER(KILN_CONCAT(kiln_or_, __LINE__), lhs, expr)
#define KILN_ASSIGN_OR_RETURN_INNER(tmp, lhs, expr) \
  auto tmp = (expr);                                \
  if (!tmp.ok()) return tmp.status();               \
  lhs = *std::move(tmp)
