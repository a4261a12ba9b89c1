// SPDX-License-Identifier: Apache-2.0
// The spellings of the command line for what binds a program: "M=512,K=1..4096", "A=f16",
// "A=600:1", "tf32,order=fixed".
#include <charconv>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "proto/contract/error.h"
#include "proto/contract/spec.h"

namespace kiln {
namespace {

// Digits with an optional sign that fill the text and fit 64 bits; no locale.
bool ParseInteger(absl::string_view text, int64_t* value) {
  const char* end = text.data() + text.size();
  auto [at, error] = std::from_chars(text.data(), end, *value);
  return error == std::errc() && at == end && !text.empty();
}

bool IsName(absl::string_view text) {
  if (text.empty() || absl::ascii_isdigit(text[0])) return false;
  for (char c : text) {
    if (!absl::ascii_isalnum(c) && c != '_') return false;
  }
  return true;
}

// Splits "A=x,B=y" and hands each name and value to `parse`, which says what is wrong with a value
// or nothing.
template <typename Value>
absl::StatusOr<std::map<std::string, Value>> ParseBindings(
    absl::string_view field, absl::string_view text, absl::string_view example,
    bool (*parse)(absl::string_view, Value*)) {
  std::map<std::string, Value> bindings;
  if (absl::StripAsciiWhitespace(text).empty()) return bindings;
  for (absl::string_view part : absl::StrSplit(text, ',')) {
    part = absl::StripAsciiWhitespace(part);
    std::pair<absl::string_view, absl::string_view> sides =
        absl::StrSplit(part, absl::MaxSplits('=', 1));
    absl::string_view name = absl::StripAsciiWhitespace(sides.first);
    absl::string_view value = absl::StripAsciiWhitespace(sides.second);
    if (!IsName(name)) {
      return InvalidField("MALFORMED_OPTION", field, part, "not of the form NAME=VALUE", example);
    }
    std::string named_field = absl::StrCat(field, ".", name);
    Value parsed{};
    if (!parse(value, &parsed))
      return InvalidField("MALFORMED_OPTION", named_field, value, "malformed", example);
    if (!bindings.try_emplace(std::string(name.data(), name.size()), std::move(parsed)).second) {
      return InvalidField("MALFORMED_OPTION", named_field, value, "a second value",
                          "each name once");
    }
  }
  return bindings;
}

bool ParseDim(absl::string_view text, DimBinding* dim) {
  std::pair<absl::string_view, absl::string_view> ends =
      absl::StrSplit(text, absl::MaxSplits("..", 1));
  bool range = text.find("..") != absl::string_view::npos;
  if (!ParseInteger(ends.first, &dim->lo)) return false;
  dim->hi = dim->lo;
  return !range || ParseInteger(ends.second, &dim->hi);
}

bool ParseOneType(absl::string_view text, DType* type) {
  std::optional<DType> found = ParseDType(text);
  if (found) *type = *found;
  return found.has_value();
}

bool ParseStrideList(absl::string_view text, std::vector<int64_t>* strides) {
  if (text.empty()) return true;  // of a scalar
  for (absl::string_view part : absl::StrSplit(text, ':')) {
    strides->emplace_back();
    if (!ParseInteger(absl::StripAsciiWhitespace(part), &strides->back())) return false;
  }
  return true;
}

bool ParseAliased(absl::string_view text, std::string* name) {
  *name = std::string(text.data(), text.size());
  return IsName(text);
}

constexpr absl::string_view kPolicyExample =
    "tf32, finite_only, approximate, accumulate=OUTPUT:TYPE, order=any|fixed, library=yes|no";

absl::Status ParseAccumulate(absl::string_view value, Policy* policy) {
  std::pair<absl::string_view, absl::string_view> sides =
      absl::StrSplit(value, absl::MaxSplits(':', 1));
  std::optional<DType> type = ParseDType(sides.second);
  std::string field = absl::StrCat("policy.accumulate.", sides.first);
  if (!IsName(sides.first) || !type) {
    return InvalidField("MALFORMED_OPTION", "policy.accumulate", value,
                        "not of the form OUTPUT:TYPE", "accumulate=C:f16");
  }
  if (!policy->accumulate.try_emplace(std::string(sides.first.data(), sides.first.size()), *type)
           .second) {
    return InvalidField("MALFORMED_OPTION", field, sides.second, "a second value",
                        "each output once");
  }
  return absl::OkStatus();
}

absl::Status ParsePolicyWord(absl::string_view part, Policy* policy) {
  if (part == "tf32") {
    policy->tf32 = true;
  } else if (part == "finite_only") {
    policy->finite_only = true;
  } else if (part == "approximate") {
    policy->approximate = true;
  } else if (part == "order=any" || part == "order=fixed") {
    policy->fixed_order = part == "order=fixed";
  } else if (part == "library=yes" || part == "library=no") {
    policy->library = part == "library=yes";
  } else if (absl::ConsumePrefix(&part, "accumulate=")) {
    return ParseAccumulate(part, policy);
  } else {
    return InvalidField("UNKNOWN_POLICY", "policy", part, "no policy", kPolicyExample);
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::map<std::string, DimBinding>> ParseDims(absl::string_view text) {
  return ParseBindings<DimBinding>("dims", text, "M=512 or K=1..4096, joined by commas", ParseDim);
}

absl::StatusOr<std::map<std::string, DType>> ParseTypes(absl::string_view text) {
  static const std::string& kExample =
      *new std::string(absl::StrCat("A=TYPE with one of ", AllDTypes()));
  return ParseBindings<DType>("types", text, kExample, ParseOneType);
}

absl::StatusOr<std::map<std::string, std::vector<int64_t>>> ParseStrides(absl::string_view text) {
  return ParseBindings<std::vector<int64_t>>(
      "strides", text, "A=600:1, one stride per axis in elements", ParseStrideList);
}

absl::StatusOr<std::map<std::string, int64_t>> ParseAlignment(absl::string_view text) {
  return ParseBindings<int64_t>("alignment", text, "A=4, in bytes", ParseInteger);
}

absl::StatusOr<std::map<std::string, std::string>> ParseAlias(absl::string_view text) {
  return ParseBindings<std::string>(
      "alias", text, "y=x, an output and the input whose memory it takes", ParseAliased);
}

absl::StatusOr<Policy> ParsePolicy(absl::string_view text) {
  Policy policy;
  if (absl::StripAsciiWhitespace(text).empty()) return policy;
  for (absl::string_view part : absl::StrSplit(text, ',')) {
    KILN_RETURN_IF_ERROR(ParsePolicyWord(absl::StripAsciiWhitespace(part), &policy));
  }
  return policy;
}

}  // namespace kiln
