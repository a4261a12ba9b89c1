// SPDX-License-Identifier: Apache-2.0
#include "server/explain.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "proto/contract/error.h"

namespace kiln::server {
namespace {

constexpr size_t kNearest = 3;

template <typename T>
void Compare(absl::string_view field, const T& stored, const T& asked, bool blocking,
             std::vector<std::string>* out) {
  if (stored == asked) return;
  out->push_back(
      absl::StrCat(field, " ", stored, ", asked ", asked, blocking ? " (blocking)" : " (ignored)"));
}

template <typename Map, typename F>
void AddOption(absl::string_view flag, const Map& map, F print, std::string* command) {
  if (map.empty()) return;
  absl::StrAppend(command, " ", flag, " ",
                  absl::StrJoin(map, ",", [&](std::string* out, const auto& item) {
                    absl::StrAppend(out, item.first, "=", print(item.second));
                  }));
}

std::string PolicyText(const Policy& policy) {
  std::vector<std::string> words;
  for (const auto& [name, type] : policy.accumulate)
    words.push_back(absl::StrCat("accumulate=", name, ":", Print(type)));
  if (policy.tf32) words.push_back("tf32");
  if (policy.finite_only) words.push_back("finite_only");
  if (policy.approximate) words.push_back("approximate");
  if (policy.fixed_order) words.push_back("order=fixed");
  if (!policy.library) words.push_back("library=no");
  return absl::StrJoin(words, ",");
}

}  // namespace

std::string TuneCommand(const Question& question) {
  const WorkloadSpec& spec = question.workload->spec;
  std::string command = absl::StrCat("kiln tune ", question.workload->graph.name, ".kiln");
  AddOption(
      "--dims", spec.dims,
      [](const DimBinding& b) {
        return b.is_static() ? absl::StrCat(b.lo) : absl::StrCat(b.lo, "..", b.hi);
      },
      &command);
  AddOption(
      "--type", spec.types, [](DType type) { return std::string(Print(type)); }, &command);
  AddOption(
      "--stride", spec.strides, [](const auto& strides) { return absl::StrJoin(strides, ":"); },
      &command);
  AddOption(
      "--align", spec.alignment, [](int64_t bytes) { return absl::StrCat(bytes); }, &command);
  AddOption(
      "--alias", spec.alias, [](const std::string& name) { return name; }, &command);
  if (const std::string policy = PolicyText(spec.policy); !policy.empty()) {
    absl::StrAppend(&command, " --policy ", policy);
  }
  absl::StrAppend(&command, " --objective ", Print(question.key.objective), " --device ",
                  question.key.device);
  return command;
}

std::string Differences(const Question& question, const Record& record) {
  const DeviceFingerprint& asked = question.device;
  const DeviceFingerprint& stored = record.device;
  std::vector<std::string> fields;
  Compare("architecture", stored.architecture, asked.architecture, true, &fields);
  Compare("model", stored.model, asked.model, true, &fields);
  Compare("features", absl::StrJoin(stored.features, "+"), absl::StrJoin(asked.features, "+"), true,
          &fields);
  Compare("cores", stored.cores, asked.cores, true, &fields);
  Compare("threads", stored.threads, asked.threads, true, &fields);
  Compare("vector_bits", stored.vector_bits, asked.vector_bits, true, &fields);
  Compare("l2_bytes", stored.l2_bytes, asked.l2_bytes, true, &fields);
  Compare("l3_bytes", stored.l3_bytes, asked.l3_bytes, true, &fields);
  Compare("multiprocessors", stored.multiprocessors, asked.multiprocessors, true, &fields);
  Compare("mig", stored.mig, asked.mig, true, &fields);
  Compare("name", stored.name, asked.name, false, &fields);
  Compare("objective", Print(record.key.objective), Print(question.key.objective), true, &fields);
  Compare("salt", record.key.salt, question.key.salt, true, &fields);
  if (fields.empty() && record.key.device != question.key.device) {
    Compare("device", record.key.device, question.key.device, true, &fields);
  }
  return absl::StrCat(record.id, ": ",
                      fields.empty() ? "not published" : absl::StrJoin(fields, "; "));
}

absl::Status ExplainMiss(const Question& question, const Answer& answer,
                         const std::vector<Record>& near) {
  const Key& key = question.key;
  ErrorInfo info{"NOT_TUNED",
                 {{"signature", key.signature},
                  {"device", key.device},
                  {"objective", Print(key.objective)},
                  {"command", TuneCommand(question)}}};
  std::string message = absl::StrCat("nothing is stored for ", question.workload->graph.name, " ",
                                     key.signature.substr(0, 12), " on ", key.device, " under ",
                                     Print(key.objective));
  if (answer.match == Match::kStale) {
    info.reason = "STALE";
    info.details["record"] = answer.record->id;
    info.details["stale_because"] = absl::StrJoin(answer.stale_because, "; ");
    absl::StrAppend(&message, " that is of today: ", answer.record->id, " is stale (",
                    info.details["stale_because"], ")");
  }
  for (size_t i = 0; i < near.size() && i < kNearest; ++i) {
    info.details[absl::StrCat("nearest_", i + 1)] = Differences(question, near[i]);
  }
  return MakeError(absl::StatusCode::kNotFound, message, info);
}

}  // namespace kiln::server
