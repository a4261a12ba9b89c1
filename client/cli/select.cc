// SPDX-License-Identifier: Apache-2.0
#include "client/cli/select.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "client/cli/operators.h"
#include "client/cli/whole_file.h"
#include "proto/contract/error.h"

namespace kiln::cli {
namespace {

constexpr int64_t kMaxProgramBytes = 64 << 10;  // as the language has it

absl::StatusOr<std::string> LoadProgram(const std::string& name) {
  if (const StandardOperator* known = FindOperator(name)) return std::string(known->program);
  if (!absl::EndsWith(name, ".kiln")) {
    return InvalidField("NO_SUCH_OPERATOR", "operator", name,
                        "no standard operator, and no FILE.kiln", OperatorNames());
  }
  return ReadWholeFile("program", name, "a readable file", kMaxProgramBytes);
}

// Reads what `parse` makes of an option's text into *value; an empty text leaves it alone.
template <typename T, typename Parse>
absl::Status ParseOption(const char* option, const std::string& text, Parse parse, T* value) {
  if (text.empty()) return absl::OkStatus();
  auto parsed = parse(text);
  if (!parsed.ok()) return Annotate(parsed.status(), option);
  *value = *std::move(parsed);
  return absl::OkStatus();
}

absl::Status ParseObjectiveWords(const std::string& text, client::Selection* selection) {
  if (text.empty()) return absl::OkStatus();
  // What does not follow the fallback was said.
  const auto one = ParseObjective(text, {CacheState::kWarm, Burst::kBurst});
  const auto other = ParseObjective(text, {CacheState::kCold, Burst::kSustained});
  if (!one.ok()) return Annotate(one.status(), "--objective");
  if (!other.ok()) return Annotate(other.status(), "--objective");
  if (one->cache == other->cache) selection->cache = one->cache;
  if (one->burst == other->burst) selection->burst = one->burst;
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<client::Selection> ParseSelect(const SelectText& select) {
  client::Selection selection;
  WorkloadSpec& spec = selection.workload;
  KILN_ASSIGN_OR_RETURN(spec.program, LoadProgram(select.program));
  KILN_RETURN_IF_ERROR(ParseOption("--dims", select.dims, ParseDims, &spec.dims));
  KILN_RETURN_IF_ERROR(ParseOption("--type", select.types, ParseTypes, &spec.types));
  KILN_RETURN_IF_ERROR(ParseOption("--stride", select.strides, ParseStrides, &spec.strides));
  KILN_RETURN_IF_ERROR(ParseOption("--align", select.alignment, ParseAlignment, &spec.alignment));
  KILN_RETURN_IF_ERROR(ParseOption("--alias", select.alias, ParseAlias, &spec.alias));
  KILN_RETURN_IF_ERROR(ParseOption("--policy", select.policy, ParsePolicy, &spec.policy));
  KILN_RETURN_IF_ERROR(ParseObjectiveWords(select.objective, &selection));
  if (select.device.empty())
    return InvalidField("INVALID_DEVICE", "--device", "", "empty", "cpu, a fingerprint, ...");
  selection.device = select.device;
  return selection;
}

std::string SelectWords(const SelectText& select) {
  std::string words = select.program;
  const auto add = [&words](const char* option, const std::string& text) {
    if (!text.empty()) absl::StrAppend(&words, " ", option, " ", text);
  };
  add("--dims", select.dims);
  add("--type", select.types);
  add("--stride", select.strides);
  add("--align", select.alignment);
  add("--alias", select.alias);
  add("--policy", select.policy);
  add("--objective", select.objective);
  if (select.device != "cpu") add("--device", select.device);
  return words;
}

}  // namespace kiln::cli
