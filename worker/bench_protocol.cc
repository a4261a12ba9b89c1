// SPDX-License-Identifier: Apache-2.0
#include "worker/bench_protocol.h"

namespace kiln::worker {
namespace {

// --- pieces ---

void Put(Writer& w, const std::map<std::string, int64_t>& map) {
  w.Integer(static_cast<int64_t>(map.size()));
  for (const auto& [name, value] : map) w.Text(name).Integer(value);
}
void Put(Writer& w, const std::map<std::string, std::string>& map) {
  w.Integer(static_cast<int64_t>(map.size()));
  for (const auto& [name, value] : map) w.Text(name).Text(value);
}
std::map<std::string, int64_t> GetIntegers(Reader& r) {
  std::map<std::string, int64_t> map;
  for (int64_t n = r.Count(); n > 0; --n) {
    std::string name = r.Text();
    map[std::move(name)] = r.Integer();
  }
  return map;
}
std::map<std::string, std::string> GetTexts(Reader& r) {
  std::map<std::string, std::string> map;
  for (int64_t n = r.Count(); n > 0; --n) {
    std::string name = r.Text();
    map[std::move(name)] = r.Text();
  }
  return map;
}

void Put(Writer& w, const std::map<std::string, DType>& types) {
  w.Integer(static_cast<int64_t>(types.size()));
  for (const auto& [name, type] : types) w.Text(name).Integer(static_cast<int64_t>(type));
}
std::map<std::string, DType> GetTypes(Reader& r) {
  std::map<std::string, DType> types;
  for (auto& [name, number] : GetIntegers(r)) types[name] = static_cast<DType>(number);
  return types;
}

void Put(Writer& w, const WorkloadSpec& spec) {
  w.Text(spec.program).Integer(static_cast<int64_t>(spec.dims.size()));
  for (const auto& [name, dim] : spec.dims) w.Text(name).Integer(dim.lo).Integer(dim.hi);
  Put(w, spec.types);
  w.Integer(static_cast<int64_t>(spec.strides.size()));
  for (const auto& [name, strides] : spec.strides) {
    w.Text(name).Integer(static_cast<int64_t>(strides.size()));
    for (const int64_t stride : strides) w.Integer(stride);
  }
  Put(w, spec.alignment);
  Put(w, spec.alias);
  const Policy& policy = spec.policy;
  Put(w, policy.accumulate);
  w.Integer(policy.tf32).Integer(policy.finite_only).Integer(policy.approximate);
  w.Integer(policy.fixed_order).Integer(policy.library);
}
WorkloadSpec GetSpec(Reader& r) {
  WorkloadSpec spec;
  spec.program = r.Text();
  for (int64_t n = r.Count(); n > 0; --n) {
    DimBinding& dim = spec.dims[r.Text()];
    dim.lo = r.Integer(), dim.hi = r.Integer();
  }
  spec.types = GetTypes(r);
  for (int64_t n = r.Count(); n > 0; --n) {
    std::vector<int64_t>& strides = spec.strides[r.Text()];
    for (int64_t m = r.Count(); m > 0; --m) strides.push_back(r.Integer());
  }
  spec.alignment = GetIntegers(r);
  spec.alias = GetTexts(r);
  Policy& policy = spec.policy;
  policy.accumulate = GetTypes(r);
  policy.tf32 = r.Integer() != 0, policy.finite_only = r.Integer() != 0,
  policy.approximate = r.Integer() != 0;
  policy.fixed_order = r.Integer() != 0, policy.library = r.Integer() != 0;
  return spec;
}

void Put(Writer& w, const Objective& objective) {
  w.Integer(static_cast<int64_t>(objective.cache)).Integer(static_cast<int64_t>(objective.burst));
}
Objective GetObjective(Reader& r) {
  Objective objective;
  objective.cache = r.Integer() != 0 ? CacheState::kCold : CacheState::kWarm;
  objective.burst = r.Integer() != 0 ? Burst::kSustained : Burst::kBurst;
  return objective;
}

Stage GetStage(Reader& r) {
  const int64_t number = r.Integer();
  return number >= 0 && number <= static_cast<int64_t>(Stage::kTooSlow) ? static_cast<Stage>(number)
                                                                        : Stage::kCrash;
}

void Put(Writer& w, const Measurement& m) {
  w.Integer(static_cast<int64_t>(m.timer)).Integer(m.method_version);
  Put(w, m.objective);
  w.Integer(static_cast<int64_t>(m.samples_ns.size()));
  for (const int64_t ns : m.samples_ns) w.Integer(ns);
  w.Integer(m.samples).Number(m.median_ns).Number(m.min_ns).Number(m.mean_ns).Number(m.iqr_ns);
  w.Number(m.ci95_lo_ns).Number(m.ci95_hi_ns).Integer(m.inner_iterations);
  Put(w, m.rejected);
  Put(w, m.conditions);
}
Measurement GetMeasurement(Reader& r) {
  Measurement m;
  m.timer = static_cast<Timer>(r.Integer() & 3);
  m.method_version = static_cast<int>(r.Integer());
  m.objective = GetObjective(r);
  for (int64_t n = r.Count(); n > 0; --n) m.samples_ns.push_back(r.Integer());
  m.samples = r.Integer();
  m.median_ns = r.Number(), m.min_ns = r.Number(), m.mean_ns = r.Number(), m.iqr_ns = r.Number();
  m.ci95_lo_ns = r.Number(), m.ci95_hi_ns = r.Number(), m.inner_iterations = r.Integer();
  m.rejected = GetIntegers(r);
  m.conditions = GetTexts(r);
  return m;
}

void Put(Writer& w, const Verification& v) {
  w.Text(v.method)
      .Integer(v.sets)
      .Number(v.max_error)
      .Number(v.tolerance)
      .Integer(static_cast<int64_t>(v.seed));
  w.Integer(static_cast<int64_t>(v.set_names.size()));
  for (const std::string& name : v.set_names) w.Text(name);
}
Verification GetVerification(Reader& r) {
  Verification v;
  v.method = r.Text(), v.sets = static_cast<int>(r.Integer());
  v.max_error = r.Number(), v.tolerance = r.Number(), v.seed = static_cast<uint64_t>(r.Integer());
  for (int64_t n = r.Count(); n > 0; --n) v.set_names.push_back(r.Text());
  return v;
}

void Put(Writer& w, const PlanFiles& files) {
  w.Text(files.plan);
  Put(w, files.artifacts);
}
PlanFiles GetFiles(Reader& r) {
  PlanFiles files;
  files.plan = r.Text();
  files.artifacts = GetTexts(r);
  return files;
}

template <typename T>
std::optional<T> Whole(const Reader& r, T value) {
  if (!r.ok()) return std::nullopt;
  return value;
}

}  // namespace

// --- messages ---

std::string Encode(const SetupRequest& value) {
  Writer w;
  Put(w, value.spec);
  Put(w, value.objective);
  w.Integer(value.threads)
      .Integer(static_cast<int64_t>(value.seed))
      .Integer(value.last_level_bytes)
      .Number(value.floor_ns)
      .Integer(value.launch_limit_ns)
      .Integer(value.reference_limit_ns);
  return w.Text(value.reference).Text(value.directory).bytes();
}
template <>
std::optional<SetupRequest> Decode(absl::string_view payload) {
  Reader r(payload);
  SetupRequest value;
  value.spec = GetSpec(r);
  value.objective = GetObjective(r);
  value.threads = static_cast<int>(r.Integer()), value.seed = static_cast<uint64_t>(r.Integer());
  value.last_level_bytes = r.Integer(), value.floor_ns = r.Number();
  value.launch_limit_ns = r.Integer(), value.reference_limit_ns = r.Integer();
  value.reference = r.Text(), value.directory = r.Text();
  return Whole(r, std::move(value));
}

std::string Encode(const ReadyAnswer& value) {
  return Writer().Text(value.library).Integer(value.reference_ns).Integer(value.sets).bytes();
}
template <>
std::optional<ReadyAnswer> Decode(absl::string_view payload) {
  Reader r(payload);
  ReadyAnswer value;
  value.library = r.Text(), value.reference_ns = r.Integer(), value.sets = r.Integer();
  return Whole(r, std::move(value));
}

std::string Encode(const TryRequest& value) {
  Writer w;
  Put(w, value.files);
  return w.Number(value.best_ns)
      .Integer(value.launch_limit_ns)
      .Integer(value.max_samples)
      .Number(value.half_width)
      .Number(value.total_ns)
      .bytes();
}
template <>
std::optional<TryRequest> Decode(absl::string_view payload) {
  Reader r(payload);
  TryRequest value;
  value.files = GetFiles(r);
  value.best_ns = r.Number(), value.launch_limit_ns = r.Integer(), value.max_samples = r.Integer();
  value.half_width = r.Number(), value.total_ns = r.Number();
  return Whole(r, std::move(value));
}

std::string Encode(const TriedAnswer& value) {
  Writer w;
  w.Integer(static_cast<int64_t>(value.stage))
      .Text(value.reason)
      .Integer(value.verify_ns)
      .Integer(value.measure_ns);
  w.Integer(value.measurement.has_value());
  if (value.measurement) Put(w, *value.measurement);
  return w.bytes();
}
template <>
std::optional<TriedAnswer> Decode(absl::string_view payload) {
  Reader r(payload);
  TriedAnswer value;
  value.stage = GetStage(r), value.reason = r.Text(), value.verify_ns = r.Integer(),
  value.measure_ns = r.Integer();
  if (r.Integer() != 0) value.measurement = GetMeasurement(r);
  return Whole(r, std::move(value));
}

std::string Encode(const EnterRequest& value) {
  Writer w;
  Put(w, value.files);
  return w.bytes();
}
template <>
std::optional<EnterRequest> Decode(absl::string_view payload) {
  Reader r(payload);
  EnterRequest value{GetFiles(r)};
  return Whole(r, std::move(value));
}

std::string Encode(const EnteredAnswer& value) {
  Writer w;
  w.Integer(static_cast<int64_t>(value.stage)).Text(value.reason).Integer(value.verify_ns);
  Put(w, value.verification);
  return w.bytes();
}
template <>
std::optional<EnteredAnswer> Decode(absl::string_view payload) {
  Reader r(payload);
  EnteredAnswer value;
  value.stage = GetStage(r), value.reason = r.Text(), value.verify_ns = r.Integer();
  value.verification = GetVerification(r);
  return Whole(r, std::move(value));
}

std::string Encode(const ContestRequest& value) {
  return Writer()
      .Integer(value.min_rounds)
      .Integer(value.max_rounds)
      .Number(value.half_width)
      .Number(value.total_ns)
      .bytes();
}
template <>
std::optional<ContestRequest> Decode(absl::string_view payload) {
  Reader r(payload);
  ContestRequest value;
  value.min_rounds = r.Integer(), value.max_rounds = r.Integer();
  value.half_width = r.Number(), value.total_ns = r.Number();
  return Whole(r, value);
}

std::string Encode(const ContestedAnswer& value) {
  Writer w;
  w.Integer(static_cast<int64_t>(value.rounds_ns.size()));
  for (const auto& rounds : value.rounds_ns) {
    w.Integer(static_cast<int64_t>(rounds.size()));
    for (const double ns : rounds) w.Number(ns);
  }
  w.Integer(static_cast<int64_t>(value.measurements.size()));
  for (const Measurement& measurement : value.measurements) Put(w, measurement);
  return w.bytes();
}
template <>
std::optional<ContestedAnswer> Decode(absl::string_view payload) {
  Reader r(payload);
  ContestedAnswer value;
  for (int64_t n = r.Count(); n > 0; --n) {
    std::vector<double>& rounds = value.rounds_ns.emplace_back();
    for (int64_t m = r.Count(); m > 0; --m) rounds.push_back(r.Number());
  }
  for (int64_t n = r.Count(); n > 0; --n) value.measurements.push_back(GetMeasurement(r));
  return Whole(r, std::move(value));
}

std::string Encode(const PhaseNote& value) {
  return Writer().Integer(value.kind).Number(value.expected_ns).bytes();
}
template <>
std::optional<PhaseNote> Decode(absl::string_view payload) {
  Reader r(payload);
  PhaseNote value;
  value.kind = static_cast<PhaseNote::Kind>(r.Integer()), value.expected_ns = r.Number();
  return Whole(r, value);
}

template <>
std::optional<FaultNote> Decode(absl::string_view payload) {
  Reader r(payload);
  FaultNote value;
  value.out_of_bounds = r.Integer() != 0, value.entrant = r.Integer(),
  value.memory_bytes = r.Integer(), value.text = r.Text();
  return Whole(r, std::move(value));
}

std::string Encode(const ErrorAnswer& value) {
  return Writer().Integer(value.code).Text(value.message).bytes();
}
template <>
std::optional<ErrorAnswer> Decode(absl::string_view payload) {
  Reader r(payload);
  ErrorAnswer value;
  value.code = static_cast<int>(r.Integer()), value.message = r.Text();
  return Whole(r, std::move(value));
}

}  // namespace kiln::worker
