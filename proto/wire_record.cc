// SPDX-License-Identifier: Apache-2.0
// What was measured and proven: measurements, verifications, outcomes, records.
#include "absl/strings/strip.h"
#include "kiln/v1/kiln.pb.h"
#include "kiln/v1/types.pb.h"
#include "proto/wire.h"
#include "proto/wire_values.h"

namespace kiln::wire {
namespace {

constexpr int kMaxSamples = 100'000;
constexpr int kMaxEntries = 256;   // of maps and lists that people read
constexpr size_t kMaxText = 4096;  // of one attribute

static_assert(EnumToWire<v1::Timer>(Timer::kCupti) == v1::TIMER_CUPTI);
static_assert(EnumToWire<v1::Timer>(Timer::kSimulated) == v1::TIMER_SIMULATED);
static_assert(EnumToWire<v1::Stage>(Stage::kMeasured) == v1::STAGE_MEASURED);
static_assert(EnumToWire<v1::Stage>(Stage::kCrash) == v1::STAGE_CRASH);
static_assert(EnumToWire<v1::Stage>(Stage::kTooSlow) == v1::STAGE_TOO_SLOW);
static_assert(EnumToWire<v1::Match>(Match::kExact) == v1::MATCH_EXACT);
static_assert(EnumToWire<v1::Match>(Match::kDefault) == v1::MATCH_DEFAULT);
static_assert(EnumToWire<v1::Match>(Match::kNone) == v1::MATCH_NONE);

absl::Status ObjectiveFromWire(const v1::Objective& message, absl::string_view at,
                               Objective* objective) {
  KILN_RETURN_IF_ERROR(EnumFromWire(message.cache(), CacheState::kCold, absl::StrCat(at, ".cache"),
                                    &objective->cache));
  return EnumFromWire(message.burst(), Burst::kSustained, absl::StrCat(at, ".burst"),
                      &objective->burst);
}

// A record's parts that are plain text or maps.
absl::Status AttributesFromWire(const v1::Record& message, absl::string_view at, Record* record) {
  const std::tuple<const char*, const std::string*, std::string*> texts[] = {
      {"source", &message.source(), &record->source},
      {"toolchain", &message.toolchain(), &record->toolchain},
      {"emitter", &message.emitter(), &record->emitter},
      {"kiln_version", &message.kiln_version(), &record->kiln_version},
      {"worker", &message.worker(), &record->worker},
      {"job", &message.job(), &record->job}};
  for (const auto& [name, from, to] : texts) {
    KILN_RETURN_IF_ERROR(CheckSize(*from, kMaxText, absl::StrCat(at, ".", name)));
    *to = *from;
  }
  KILN_RETURN_IF_ERROR(
      CheckCount(message.artifacts_size(), kMaxEntries, absl::StrCat(at, ".artifacts")));
  record->artifacts.assign(message.artifacts().begin(), message.artifacts().end());
  KILN_RETURN_IF_ERROR(
      MapFromWire(message.contest(), kMaxEntries, absl::StrCat(at, ".contest"), &record->contest));
  for (const auto& [name, ratio] : record->contest) {
    KILN_RETURN_IF_ERROR(CheckQuantity(ratio, absl::StrCat(at, ".contest[", name, "]")));
  }
  return MapFromWire(message.trials(), kMaxEntries, absl::StrCat(at, ".trials"), &record->trials);
}

}  // namespace

std::string RecordName(absl::string_view id) {
  return id.empty() ? "" : absl::StrCat("records/", id);
}
std::string RecordId(absl::string_view name) {
  return std::string(absl::StripPrefix(name, "records/"));
}

v1::Stage ToWire(Stage stage) { return EnumToWire<v1::Stage>(stage); }
absl::StatusOr<Stage> FromWire(v1::Stage stage, absl::string_view at) {
  Stage value;
  KILN_RETURN_IF_ERROR(EnumFromWire(stage, Stage::kTooSlow, at, &value));
  return value;
}

v1::Match ToWire(Match match) { return EnumToWire<v1::Match>(match); }
absl::StatusOr<Match> FromWire(v1::Match match, absl::string_view at) {
  if (match == v1::MATCH_UNSPECIFIED) return Match::kExact;
  Match value;
  KILN_RETURN_IF_ERROR(EnumFromWire(match, Match::kDefault, at, &value));
  return value;
}

void ToWire(const Measurement& measurement, v1::Measurement* message) {
  message->Clear();
  message->set_timer(EnumToWire<v1::Timer>(measurement.timer));
  message->set_method_version(measurement.method_version);
  ToWire(measurement.objective, message->mutable_objective());
  message->mutable_samples_ns()->Assign(measurement.samples_ns.begin(),
                                        measurement.samples_ns.end());
  message->set_samples(measurement.samples);
  message->set_median_ns(measurement.median_ns);
  message->set_min_ns(measurement.min_ns);
  message->set_mean_ns(measurement.mean_ns);
  message->set_iqr_ns(measurement.iqr_ns);
  message->set_ci95_lo_ns(measurement.ci95_lo_ns);
  message->set_ci95_hi_ns(measurement.ci95_hi_ns);
  message->set_inner_iterations(measurement.inner_iterations);
  MapToWire(measurement.rejected, message->mutable_rejected());
  MapToWire(measurement.conditions, message->mutable_conditions());
}

absl::StatusOr<Measurement> FromWire(const v1::Measurement& message, absl::string_view at) {
  Measurement measurement;
  KILN_RETURN_IF_ERROR(EnumFromWire(message.timer(), Timer::kSimulated, absl::StrCat(at, ".timer"),
                                    &measurement.timer));
  measurement.method_version = message.method_version();
  KILN_RETURN_IF_ERROR(ObjectiveFromWire(message.objective(), absl::StrCat(at, ".objective"),
                                         &measurement.objective));
  KILN_RETURN_IF_ERROR(
      CheckCount(message.samples_ns_size(), kMaxSamples, absl::StrCat(at, ".samples_ns")));
  measurement.samples_ns.assign(message.samples_ns().begin(), message.samples_ns().end());
  KILN_RETURN_IF_ERROR(CheckAtLeast(message.samples(), 0, absl::StrCat(at, ".samples")));
  measurement.samples = message.samples();
  const std::tuple<const char*, double, double*> times[] = {
      {"median_ns", message.median_ns(), &measurement.median_ns},
      {"min_ns", message.min_ns(), &measurement.min_ns},
      {"mean_ns", message.mean_ns(), &measurement.mean_ns},
      {"iqr_ns", message.iqr_ns(), &measurement.iqr_ns},
      {"ci95_lo_ns", message.ci95_lo_ns(), &measurement.ci95_lo_ns},
      {"ci95_hi_ns", message.ci95_hi_ns(), &measurement.ci95_hi_ns}};
  for (const auto& [name, from, to] : times) {
    KILN_RETURN_IF_ERROR(CheckQuantity(from, absl::StrCat(at, ".", name)));
    *to = from;
  }
  measurement.inner_iterations = message.inner_iterations();
  KILN_RETURN_IF_ERROR(MapFromWire(message.rejected(), kMaxEntries, absl::StrCat(at, ".rejected"),
                                   &measurement.rejected));
  KILN_RETURN_IF_ERROR(MapFromWire(message.conditions(), kMaxEntries,
                                   absl::StrCat(at, ".conditions"), &measurement.conditions));
  return measurement;
}

void ToWire(const Verification& verification, v1::Verification* message) {
  message->Clear();
  message->set_method(verification.method);
  message->set_sets(verification.sets);
  message->set_max_error(verification.max_error);
  message->set_tolerance(verification.tolerance);
  message->set_seed(verification.seed);
  message->mutable_set_names()->Assign(verification.set_names.begin(),
                                       verification.set_names.end());
}

absl::StatusOr<Verification> FromWire(const v1::Verification& message, absl::string_view at) {
  Verification verification;
  KILN_RETURN_IF_ERROR(CheckSize(message.method(), kMaxText, absl::StrCat(at, ".method")));
  KILN_RETURN_IF_ERROR(CheckAtLeast(message.sets(), 0, absl::StrCat(at, ".sets")));
  KILN_RETURN_IF_ERROR(CheckQuantity(message.max_error(), absl::StrCat(at, ".max_error")));
  KILN_RETURN_IF_ERROR(CheckQuantity(message.tolerance(), absl::StrCat(at, ".tolerance")));
  KILN_RETURN_IF_ERROR(
      CheckCount(message.set_names_size(), kMaxEntries, absl::StrCat(at, ".set_names")));
  verification.method = message.method();
  verification.sets = message.sets();
  verification.max_error = message.max_error();
  verification.tolerance = message.tolerance();
  verification.seed = message.seed();
  verification.set_names.assign(message.set_names().begin(), message.set_names().end());
  return verification;
}

void ToWire(const Outcome& outcome, v1::Outcome* message) {
  message->Clear();
  ToWire(outcome.schedule, message->mutable_schedule());
  message->set_stage(ToWire(outcome.stage));
  message->set_reason(outcome.reason);
  if (outcome.measurement) ToWire(*outcome.measurement, message->mutable_measurement());
  message->set_predicted_ns(outcome.predicted_ns);
  message->set_emit_ns(outcome.emit_ns);
  message->set_compile_ns(outcome.compile_ns);
  message->set_verify_ns(outcome.verify_ns);
  message->set_measure_ns(outcome.measure_ns);
  message->set_toolchain(outcome.toolchain);
  message->set_sequence(outcome.sequence);
}

absl::StatusOr<Outcome> FromWire(const v1::Outcome& message, absl::string_view at) {
  Outcome outcome;
  KILN_ASSIGN_OR_RETURN(outcome.schedule,
                        FromWire(message.schedule(), absl::StrCat(at, ".schedule")));
  KILN_ASSIGN_OR_RETURN(outcome.stage, FromWire(message.stage(), absl::StrCat(at, ".stage")));
  KILN_RETURN_IF_ERROR(CheckSize(message.reason(), kMaxText, absl::StrCat(at, ".reason")));
  KILN_RETURN_IF_ERROR(CheckSize(message.toolchain(), kMaxText, absl::StrCat(at, ".toolchain")));
  KILN_RETURN_IF_ERROR(CheckQuantity(message.predicted_ns(), absl::StrCat(at, ".predicted_ns")));
  KILN_RETURN_IF_ERROR(CheckAtLeast(message.sequence(), 0, absl::StrCat(at, ".sequence")));
  outcome.reason = message.reason();
  if (message.has_measurement()) {
    KILN_ASSIGN_OR_RETURN(outcome.measurement,
                          FromWire(message.measurement(), absl::StrCat(at, ".measurement")));
  }
  outcome.predicted_ns = message.predicted_ns();
  outcome.emit_ns = message.emit_ns();
  outcome.compile_ns = message.compile_ns();
  outcome.verify_ns = message.verify_ns();
  outcome.measure_ns = message.measure_ns();
  outcome.toolchain = message.toolchain();
  outcome.sequence = message.sequence();
  return outcome;
}

void ToWire(const Record& record, v1::Record* message) {
  message->Clear();
  message->set_name(RecordName(record.id));
  message->set_signature(record.key.signature);
  message->set_device_id(record.key.device);
  ToWire(record.key.objective, message->mutable_objective());
  message->set_salt(record.key.salt);
  message->set_canonical(record.canonical);
  ToWire(record.spec, message->mutable_spec());
  ToWire(record.device, message->mutable_device());
  ToWire(record.schedule, message->mutable_schedule());
  ToWire(record.plan, message->mutable_plan());
  message->mutable_artifacts()->Assign(record.artifacts.begin(), record.artifacts.end());
  message->set_source(record.source);
  ToWire(record.measurement, message->mutable_measurement());
  ToWire(record.verification, message->mutable_verification());
  message->mutable_baseline()->set_name(record.baseline.name);
  message->mutable_baseline()->set_median_ns(record.baseline.median_ns);
  message->mutable_baseline()->set_ratio(record.baseline.ratio);
  MapToWire(record.contest, message->mutable_contest());
  message->set_toolchain(record.toolchain);
  message->set_emitter(record.emitter);
  message->set_kiln_version(record.kiln_version);
  message->set_worker(record.worker);
  message->set_job(record.job);
  MapToWire(record.trials, message->mutable_trials());
  message->set_budget_exhausted(record.budget_exhausted);
  message->set_seed(record.seed);
  if (IsSet(record.created)) TimeToWire(record.created, message->mutable_create_time());
}

absl::StatusOr<Record> FromWire(const v1::Record& message, absl::string_view at) {
  Record record;
  record.id = RecordId(message.name());
  record.key.signature = message.signature();
  record.key.device = message.device_id();
  record.key.salt = message.salt();
  KILN_RETURN_IF_ERROR(ObjectiveFromWire(message.objective(), absl::StrCat(at, ".objective"),
                                         &record.key.objective));
  KILN_RETURN_IF_ERROR(CheckSize(message.canonical(), 4 << 20, absl::StrCat(at, ".canonical")));
  record.canonical = message.canonical();
  KILN_ASSIGN_OR_RETURN(record.spec, FromWire(message.spec(), absl::StrCat(at, ".spec")));
  KILN_ASSIGN_OR_RETURN(record.device, FromWire(message.device(), absl::StrCat(at, ".device")));
  KILN_ASSIGN_OR_RETURN(record.schedule,
                        FromWire(message.schedule(), absl::StrCat(at, ".schedule")));
  KILN_ASSIGN_OR_RETURN(record.plan, FromWire(message.plan(), absl::StrCat(at, ".plan")));
  KILN_ASSIGN_OR_RETURN(record.measurement,
                        FromWire(message.measurement(), absl::StrCat(at, ".measurement")));
  KILN_ASSIGN_OR_RETURN(record.verification,
                        FromWire(message.verification(), absl::StrCat(at, ".verification")));
  KILN_RETURN_IF_ERROR(
      CheckSize(message.baseline().name(), kMaxText, absl::StrCat(at, ".baseline.name")));
  KILN_RETURN_IF_ERROR(
      CheckQuantity(message.baseline().median_ns(), absl::StrCat(at, ".baseline.median_ns")));
  KILN_RETURN_IF_ERROR(
      CheckQuantity(message.baseline().ratio(), absl::StrCat(at, ".baseline.ratio")));
  record.baseline = {message.baseline().name(), message.baseline().median_ns(),
                     message.baseline().ratio()};
  KILN_RETURN_IF_ERROR(AttributesFromWire(message, at, &record));
  record.budget_exhausted = message.budget_exhausted();
  record.seed = message.seed();
  if (message.has_create_time()) record.created = TimeFromWire(message.create_time());
  return record;
}

}  // namespace kiln::wire
