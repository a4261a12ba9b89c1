// SPDX-License-Identifier: Apache-2.0
#include "server/operation_filter.h"

#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "proto/contract/error.h"

namespace kiln::server {
namespace {

constexpr char kAllowed[] =
    "terms joined by AND: done = true|false, client = \"...\", job = \"jobs/...\", state = "
    "queued|running|succeeded|failed|cancelled";

absl::Status BadFilter(absl::string_view term) {
  return InvalidField("BAD_FILTER", "filter", term, "no term of a filter", kAllowed);
}

// Adds `name = value`, each name once; false if it is none of the above.
bool AddTerm(absl::string_view name, absl::string_view value, OperationFilter* filter) {
  if (name == "done" && !filter->done && (value == "true" || value == "false")) {
    filter->done = value == "true";
    return true;
  }
  if (name == "client" && !filter->client) {
    filter->client = std::string(value);
    return true;
  }
  if (name == "job" && !filter->job) {
    filter->job = std::string(value);
    return true;
  }
  if (name == "state" && !filter->state) {
    filter->state = ParseJobState(value);
    return filter->state.has_value();
  }
  return false;
}

}  // namespace

absl::StatusOr<OperationFilter> ParseOperationFilter(absl::string_view text) {
  OperationFilter filter;
  if (absl::StripAsciiWhitespace(text).empty()) return filter;
  for (absl::string_view term : absl::StrSplit(text, " AND ")) {
    const std::vector<absl::string_view> sides = absl::StrSplit(term, absl::MaxSplits('=', 1));
    if (sides.size() != 2) return BadFilter(term);
    absl::string_view value = absl::StripAsciiWhitespace(sides[1]);
    const bool opened = absl::ConsumePrefix(&value, "\"");
    if (absl::ConsumeSuffix(&value, "\"") != opened) return BadFilter(term);
    if (!AddTerm(absl::StripAsciiWhitespace(sides[0]), value, &filter)) return BadFilter(term);
  }
  return filter;
}

bool Matches(const OperationFilter& filter, const Operation& operation, const Job& job) {
  const bool done = operation.cancelled || IsEnd(job.state);
  return (!filter.done || *filter.done == done) &&
         (!filter.client || *filter.client == operation.client) &&
         (!filter.job || *filter.job == operation.job) &&
         (!filter.state || *filter.state == job.state);
}

}  // namespace kiln::server
