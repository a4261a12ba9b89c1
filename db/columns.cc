// SPDX-License-Identifier: Apache-2.0
#include "db/columns.h"

#include <algorithm>

#include "db/json.h"

namespace kiln {

// Found by argument-dependent lookup, beside the contract's own Print of enums.
static absl::string_view Print(StepKind kind) {
  constexpr absl::string_view kWords[] = {"kernel", "library", "fill", "prepack"};
  return kWords[static_cast<int>(kind)];
}
static absl::string_view Print(ArgumentKind kind) {
  constexpr absl::string_view kWords[] = {"tensor", "dim", "scalar", "workspace"};
  return kWords[static_cast<int>(kind)];
}

}  // namespace kiln

namespace kiln::db {
namespace {

template <typename Enum>
std::optional<Enum> FindWord(absl::string_view word, int count) {
  for (int i = 0; i < count; ++i) {
    if (Print(static_cast<Enum>(i)) == word) return static_cast<Enum>(i);
  }
  return std::nullopt;
}

}  // namespace

template <>
std::optional<DType> ParseWord<DType>(absl::string_view word) {
  return ParseDType(word);
}
template <>
std::optional<Timer> ParseWord<Timer>(absl::string_view word) {
  return ParseTimer(word);
}
template <>
std::optional<StepKind> ParseWord<StepKind>(absl::string_view word) {
  return FindWord<StepKind>(word, 4);
}
template <>
std::optional<ArgumentKind> ParseWord<ArgumentKind>(absl::string_view word) {
  return FindWord<ArgumentKind>(word, 4);
}

}  // namespace kiln::db

// Fields must be found by argument-dependent lookup too, so they live beside the types they are of.
namespace kiln {

using db::Is;

// --- WorkloadSpec ---

template <typename Archive, Is<DimBinding> T>
void Fields(Archive& a, T& d) {
  a.Field("lo", d.lo);
  a.Field("hi", d.hi);
}

template <typename Archive, Is<Policy> T>
void Fields(Archive& a, T& p) {
  a.Field("accumulate", p.accumulate);
  a.Field("tf32", p.tf32);
  a.Field("finite_only", p.finite_only);
  a.Field("approximate", p.approximate);
  a.Field("fixed_order", p.fixed_order);
  a.Field("library", p.library);
}

template <typename Archive, Is<WorkloadSpec> T>
void Fields(Archive& a, T& s) {
  a.Field("program", s.program);
  a.Field("dims", s.dims);
  a.Field("types", s.types);
  a.Field("strides", s.strides);
  a.Field("alignment", s.alignment);
  a.Field("alias", s.alias);
  a.Field("policy", s.policy);
}

// --- Plan ---

template <typename Archive, Is<Count> T>
void Fields(Archive& a, T& c) {
  a.Field("value", c.value);
  a.Field("expression", c.expression);
}

template <typename Archive, Is<Argument> T>
void Fields(Archive& a, T& x) {
  a.Field("kind", x.kind);
  a.Field("index", x.index);
  a.Field("offset", x.offset);
  a.Field("persistent", x.persistent);
  a.Field("is_float", x.is_float);
  a.Field("number", x.number);
  a.Field("integer", x.integer);
}

template <typename Archive, Is<Step> T>
void Fields(Archive& a, T& s) {
  a.Field("kind", s.kind);
  a.Field("entry", s.entry);
  a.Field("grid", s.grid);
  a.Field("block", s.block);
  a.Field("cluster", s.cluster);
  a.Field("shared_bytes", s.shared_bytes);
  a.Field("attributes", s.attributes);
  a.Field("artifact", s.artifact);
  a.Field("arguments", s.arguments);
}

template <typename Archive, Is<TensorNeed> T>
void Fields(Archive& a, T& n) {
  a.Field("alignment", n.alignment);
  a.Field("span_bytes", n.span_bytes);
}

template <typename Archive, Is<Plan> T>
void Fields(Archive& a, T& p) {
  a.Field("steps", p.steps);
  a.Field("workspace_bytes", p.workspace_bytes);
  a.Field("persistent_bytes", p.persistent_bytes);
  a.Field("tensors", p.tensors);
  a.Field("features", p.features);
  a.Field("needs", p.needs);
}

// --- Measurement and what goes with it ---

template <typename Archive, Is<Objective> T>
void Fields(Archive& a, T& o) {
  bool cold = o.cache == CacheState::kCold;
  bool sustained = o.burst == Burst::kSustained;
  a.Field("cold", cold);
  a.Field("sustained", sustained);
  if constexpr (!std::is_const_v<T>) {
    o.cache = cold ? CacheState::kCold : CacheState::kWarm;
    o.burst = sustained ? Burst::kSustained : Burst::kBurst;
  }
}

template <typename Archive, Is<Measurement> T>
void Fields(Archive& a, T& m) {
  a.Field("timer", m.timer);
  a.Field("method_version", m.method_version);
  a.Field("objective", m.objective);
  a.Field("samples_ns", m.samples_ns);
  a.Field("samples", m.samples);
  a.Field("median_ns", m.median_ns);
  a.Field("min_ns", m.min_ns);
  a.Field("mean_ns", m.mean_ns);
  a.Field("iqr_ns", m.iqr_ns);
  a.Field("ci95_lo_ns", m.ci95_lo_ns);
  a.Field("ci95_hi_ns", m.ci95_hi_ns);
  a.Field("inner_iterations", m.inner_iterations);
  a.Field("rejected", m.rejected);
  a.Field("conditions", m.conditions);
}

template <typename Archive, Is<Verification> T>
void Fields(Archive& a, T& v) {
  a.Field("method", v.method);
  a.Field("sets", v.sets);
  a.Field("max_error", v.max_error);
  a.Field("tolerance", v.tolerance);
  a.Field("seed", v.seed);
  a.Field("set_names", v.set_names);
}

template <typename Archive, Is<Baseline> T>
void Fields(Archive& a, T& b) {
  a.Field("name", b.name);
  a.Field("median_ns", b.median_ns);
  a.Field("ratio", b.ratio);
}

template <typename Archive, Is<Budget> T>
void Fields(Archive& a, T& b) {
  a.Field("trials", b.trials);
  a.Field("seconds", b.seconds);
  a.Field("seed", b.seed);
  a.Field("wait_worker_seconds", b.wait_worker_seconds);
}

template <typename Archive, Is<Progress> T>
void Fields(Archive& a, T& p) {
  a.Field("phase", p.phase);
  a.Field("queue_position", p.queue_position);
  a.Field("done", p.done);
  a.Field("total", p.total);
  a.Field("failed", p.failed);
  a.Field("best_ns", p.best_ns);
  a.Field("best_schedule", p.best_schedule);
  a.Field("seconds_left", p.seconds_left);
  a.Field("changed", p.changed);
}

}  // namespace kiln

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
