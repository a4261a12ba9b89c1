// SPDX-License-Identifier: Apache-2.0
#include "db/columns.h"

#include <algorithm>

#include "db/fields.h"
#include "db/json.h"

namespace kiln::db {
namespace {

// A part of a value that lies in one column: Fields of such a view names what belongs there.
template <typename T>
struct EvidenceOf {
  T& record;
  Measurement& measurement;  // without samples
};
template <typename Archive, typename T>
void Fields(Archive& a, const EvidenceOf<T>& view) {
  auto& r = view.record;
  a.Field("source", r.source);
  a.Field("measurement", view.measurement);
  a.Field("verification", r.verification);
  a.Field("baseline", r.baseline);
  a.Field("contest", r.contest);
  a.Field("toolchain", r.toolchain);
  a.Field("emitter", r.emitter);
  a.Field("kiln_version", r.kiln_version);
  a.Field("worker", r.worker);
  a.Field("job", r.job);
  a.Field("trials", r.trials);
  a.Field("budget_exhausted", r.budget_exhausted);
  a.Field("seed", r.seed);
  a.Field("device_name", r.device.name);
  a.Field("device_memory_bytes", r.device.memory_bytes);
}

template <typename T>
struct RequestOf {
  T& job;
};
template <typename Archive, typename T>
void Fields(Archive& a, const RequestOf<T>& view) {
  auto& j = view.job;
  a.Field("spec", j.spec);
  a.Field("force", j.force);
  a.Field("device_name", j.device.name);
  a.Field("device_memory_bytes", j.device.memory_bytes);
}

template <typename T>
struct ConditionOf {
  T& job;
};
template <typename Archive, typename T>
void Fields(Archive& a, const ConditionOf<T>& view) {
  auto& j = view.job;
  a.Field("budget", j.budget);
  a.Field("priority", j.priority);
  a.Field("attempts", j.attempts);
  a.Field("losses", j.losses);
  a.Field("worker", j.worker);
  a.Field("leased_seconds", j.leased_seconds);
  a.Field("progress", j.progress);
  a.Field("record", j.record);
  a.Field("error_code", j.error_code);
  a.Field("error_message", j.error_message);
  a.Field("error_reason", j.error_reason);
  a.Field("histogram", j.histogram);
  a.Field("started", j.started);
  a.Field("ended", j.ended);
}

template <typename T>
struct DetailOf {
  T& outcome;
};
template <typename Archive, typename T>
void Fields(Archive& a, const DetailOf<T>& view) {
  auto& o = view.outcome;
  a.Field("reason", o.reason);
  a.Field("measurement", o.measurement);
  a.Field("predicted_ns", o.predicted_ns);
  a.Field("emit_ns", o.emit_ns);
  a.Field("compile_ns", o.compile_ns);
  a.Field("verify_ns", o.verify_ns);
  a.Field("measure_ns", o.measure_ns);
}

template <typename View>
std::string WriteView(View view) {
  JsonWriter writer;
  writer.Value(view);
  return writer.Take();
}
template <typename View>
bool ReadView(absl::string_view text, View view) {
  JsonReader reader(text);
  reader.Value(view);
  return reader.done();
}

}  // namespace

std::string ToColumn(const WorkloadSpec& spec) { return ToJson(spec); }
std::string ToColumn(const Plan& plan) { return ToJson(plan); }
std::string ToColumn(const std::vector<std::string>& words) { return ToJson(words); }
std::string ToColumn(const std::vector<int64_t>& numbers) { return ToJson(numbers); }
bool FromColumn(absl::string_view text, WorkloadSpec* spec) { return FromJson(text, spec); }
bool FromColumn(absl::string_view text, Plan* plan) { return FromJson(text, plan); }
bool FromColumn(absl::string_view text, std::vector<std::string>* words) {
  return FromJson(text, words);
}
bool FromColumn(absl::string_view text, std::vector<int64_t>* numbers) {
  return FromJson(text, numbers);
}

std::vector<int64_t> StoredSamples(const std::vector<int64_t>& samples) {
  if (samples.size() <= kStoredSamples) return samples;
  std::vector<int64_t> kept;
  for (size_t i = 0; i < kStoredSamples; ++i) {
    kept.push_back(samples[i * samples.size() / kStoredSamples]);
  }
  return kept;
}

std::string EvidenceColumn(const Record& record) {
  Measurement summary = record.measurement;
  summary.samples_ns.clear();
  return WriteView(EvidenceOf<const Record>{record, summary});
}
std::string RequestColumn(const Job& job) { return WriteView(RequestOf<const Job>{job}); }
std::string ConditionColumn(const Job& job) { return WriteView(ConditionOf<const Job>{job}); }
std::string DetailColumn(const Outcome& outcome) {
  Outcome kept = outcome;
  if (kept.measurement) {
    kept.measurement->samples_ns = StoredSamples(kept.measurement->samples_ns);
  }
  return WriteView(DetailOf<Outcome>{kept});
}
bool FromEvidence(absl::string_view text, Record* record) {
  return ReadView(text, EvidenceOf<Record>{*record, record->measurement});
}
bool FromRequest(absl::string_view text, Job* job) { return ReadView(text, RequestOf<Job>{*job}); }
bool FromCondition(absl::string_view text, Job* job) {
  return ReadView(text, ConditionOf<Job>{*job});
}
bool FromDetail(absl::string_view text, Outcome* outcome) {
  return ReadView(text, DetailOf<Outcome>{*outcome});
}

}  // namespace kiln::db
