// SPDX-License-Identifier: Apache-2.0
#include "proto/contract/error.h"

#include <utility>

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"

namespace kiln {
namespace {

// Payloads of an absl::Status: one for the reason, one for each detail. Values are kept byte for
// byte.
constexpr absl::string_view kReasonUrl = "kiln/reason";
constexpr absl::string_view kDetailPrefix = "kiln/detail/";

}  // namespace

absl::Status MakeError(absl::StatusCode code, absl::string_view message, ErrorInfo info) {
  absl::Status status(code, message);
  status.SetPayload(kReasonUrl, absl::Cord(std::move(info.reason)));
  for (auto& [name, value] : info.details) {
    status.SetPayload(absl::StrCat(kDetailPrefix, name), absl::Cord(std::move(value)));
  }
  return status;
}

absl::Status InvalidField(absl::string_view reason, absl::string_view field,
                          absl::string_view value, absl::string_view what,
                          absl::string_view allowed) {
  return MakeError(absl::StatusCode::kInvalidArgument,
                   absl::StrCat(field, ": ", value, value.empty() ? "" : " ", "is ", what,
                                "; allowed: ", allowed),
                   {std::string(reason),
                    {{"field", std::string(field)},
                     {"value", std::string(value)},
                     {"allowed", std::string(allowed)}}});
}

ErrorInfo GetErrorInfo(const absl::Status& status) {
  ErrorInfo info;
  status.ForEachPayload([&](absl::string_view url, const absl::Cord& value) {
    if (url == kReasonUrl) {
      info.reason = std::string(value);
    } else if (url.substr(0, kDetailPrefix.size()) == kDetailPrefix) {
      info.details[std::string(url.substr(kDetailPrefix.size()))] = std::string(value);
    }
  });
  return info;
}

absl::Status Annotate(const absl::Status& status, absl::string_view context) {
  if (status.ok()) return status;
  absl::Status annotated(status.code(), absl::StrCat(context, ": ", status.message()));
  status.ForEachPayload(
      [&](absl::string_view url, const absl::Cord& value) { annotated.SetPayload(url, value); });
  return annotated;
}

}  // namespace kiln
