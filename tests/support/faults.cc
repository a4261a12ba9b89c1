// SPDX-License-Identifier: Apache-2.0
#include "tests/support/faults.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "worker/compiler/analysis/contraction.h"

namespace kiln::worker {
namespace {

constexpr char kFamily[] = "faulty";

// One row of C per block. KILN_* are replaced.
constexpr char kKernel[] = R"(// KILN_SCHEDULE
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
union kiln_arg { void* pointer; int64_t integer; double number; };
struct kiln_block { int64_t index[3]; int64_t grid[3]; void* shared; };
constexpr int64_t M = KILN_M, N = KILN_N, K = KILN_K;
KILN_BEFORE
extern "C" void kiln_faulty(const kiln_arg* args, const kiln_block* block) {
  const float* a = static_cast<const float*>(args[0].pointer);
  const float* b = static_cast<const float*>(args[1].pointer);
  float* c = static_cast<float*>(args[2].pointer);
  const int64_t m = block->index[0];
  KILN_INSTEAD
  for (int64_t n = 0; n < N; ++n) c[m * N + n] = 0;
  KILN_LOOPS
  KILN_AFTER
}
)";

constexpr char kRowLoops[] =
    "for (int64_t k = 0; k < K; ++k) for (int64_t n = 0; n < N; ++n) c[m * N + n] += a[m * K + k] "
    "* b[k * N + n];";
constexpr char kDotLoops[] =
    "for (int64_t n = 0; n < N; ++n) { float s = 0; for (int64_t k = 0; k < K; ++k) s += a[m * K + "
    "k] * b[k * N + n]; c[m * N + n] = s; }";

struct Parts {
  std::string before, instead, after;
};

Parts PartsOf(Fault fault) {
  switch (fault) {
    case Fault::kSegfault:
      return {"", "*reinterpret_cast<volatile int*>(16) = 1;", ""};
    case Fault::kEndlessLoop:
      return {"", "for (volatile int64_t i = 0; ; i = i + 1) {}", ""};
    case Fault::kEndlessMemory:
      return {"",
              "for (;;) { volatile char* p = static_cast<volatile char*>(malloc(64 << 20)); p[0] = "
              "1; p[32 << 20] = 1; }",
              ""};
    case Fault::kWritesBeyond:
      return {"", "", "if (m == M - 1) c[M * N] = 1;"};
    case Fault::kReadsBeyond:
      return {"volatile float kiln_sink;", "", "if (m == M - 1) kiln_sink = b[K * N];"};
    case Fault::kHalfTheOutput:
      return {"", "if (m >= M / 2) return;", ""};
    case Fault::kNaN:
      return {"", "", "for (int64_t n = 0; n < N; ++n) c[m * N + n] = NAN;"};
    case Fault::kWrongTail:
      return {"", "", "c[m * N + N - 1] -= a[m * K] * b[N - 1];"};
    case Fault::kSlow:
      return {"", "",
              "for (int r = 0; r < 4000; ++r) for (volatile int64_t i = 0; i < N * K / 8; i = i + "
              "1) {}"};
    case Fault::kBadSource:
      return {"int kiln_bad = undeclared_by_kiln;", "", ""};
    case Fault::kEndlessSource:
      return {
          "constexpr long Spin() { long s = 0; for (long i = 0; i < (1L << 40); ++i) s ^= i; "
          "return s; }\n"
          "static_assert(Spin() == 0);",
          "", ""};
    case Fault::kDoesNothing:
      return {"", "return;", ""};
    case Fault::kAborts:
      return {"", "abort();", ""};
    default:
      return {};
  }
}

class FaultySpace : public compiler::Space {
 public:
  explicit FaultySpace(const FaultyOptions& options) {
    compiler::Knob fault{"fault", {}, "what is wrong"},
        variant{"variant", {}, "order of the loops"};
    for (const Fault f : options.faults) fault.values.push_back(static_cast<int64_t>(f));
    for (int i = 0; i < options.variants; ++i) variant.values.push_back(i);
    knobs_ = {fault, variant};
    default_ = FaultySchedule(*options.faults.begin());
  }
  const std::vector<compiler::Knob>& knobs() const override { return knobs_; }
  const Schedule& default_schedule() const override { return default_; }
  absl::Status Check(const Schedule& schedule) const override {
    if (schedule.family != kFamily || schedule.knobs.size() != knobs_.size())
      return absl::InvalidArgumentError("not faulty/1");
    for (const compiler::Knob& knob : knobs_) {
      const auto set = schedule.knobs.find(knob.name);
      if (set == schedule.knobs.end() ||
          std::count(knob.values.begin(), knob.values.end(), set->second) == 0) {
        return absl::InvalidArgumentError(absl::StrCat("no such ", knob.name));
      }
    }
    return absl::OkStatus();
  }
  compiler::SpaceSize Count(int64_t limit) const override {
    const int64_t all = knobs_[0].values.size() * knobs_[1].values.size();
    return {std::min(limit, all), all <= limit};
  }
  Schedule Sample(uint64_t random) const override {
    const auto& faults = knobs_[0].values;
    const auto& variants = knobs_[1].values;
    return FaultySchedule(static_cast<Fault>(faults[random % faults.size()]),
                          static_cast<int>(variants[random / faults.size() % variants.size()]));
  }
  std::vector<Schedule> Neighbours(const Schedule& schedule) const override {
    std::vector<Schedule> near;
    for (const compiler::Knob& knob : knobs_) {
      const auto at =
          std::find(knob.values.begin(), knob.values.end(), schedule.knobs.at(knob.name));
      for (const auto next : {at - 1, at + 1}) {
        if (at == knob.values.end() || next < knob.values.begin() || next >= knob.values.end())
          continue;
        near.push_back(schedule);
        near.back().knobs[knob.name] = *next;
      }
    }
    return near;
  }

 private:
  std::vector<compiler::Knob> knobs_;
  Schedule default_;
};

class FaultyFrontend : public Frontend {
 public:
  explicit FaultyFrontend(FaultyOptions options)
      : options_(std::move(options)), real_(MakeFrontend()) {}

  absl::StatusOr<std::unique_ptr<compiler::Space>> MakeSpace(
      const Workload& workload, const DeviceFingerprint&) const override {
    const absl::StatusOr<compiler::ContractionForm> form = compiler::MatchContraction(workload);
    if (!form.ok()) return form.status();
    return std::make_unique<FaultySpace>(options_);
  }

  absl::StatusOr<compiler::Emission> Emit(const Workload& workload, const DeviceFingerprint& device,
                                          const Schedule& schedule) const override {
    if (schedule.family == "library") {
      if (!options_.library) return absl::FailedPreconditionError("no library in this test");
      return real_->Emit(workload, device, schedule);
    }
    const Fault fault = static_cast<Fault>(schedule.knobs.at("fault"));
    if (fault == Fault::kNoEmission) return absl::InternalError("this emitter is out of order");
    const absl::StatusOr<compiler::ContractionForm> form = compiler::MatchContraction(workload);
    if (!form.ok()) return form.status();
    const Parts parts = PartsOf(fault);
    compiler::Emission emission;
    emission.source = absl::StrReplaceAll(
        kKernel, {{"KILN_SCHEDULE", kiln::Print(schedule)},
                  {"KILN_M", absl::StrCat(form->M())},
                  {"KILN_N", absl::StrCat(form->N())},
                  {"KILN_K", absl::StrCat(form->K())},
                  {"KILN_BEFORE", parts.before},
                  {"KILN_INSTEAD", parts.instead},
                  {"KILN_AFTER", parts.after},
                  {"KILN_LOOPS", schedule.knobs.at("variant") % 2 == 0 ? kRowLoops : kDotLoops}});
    emission.media = "source/c++";
    emission.flags = {"-O2"};
    if (fault == Fault::kEndlessSource) {
      emission.flags = {"-fconstexpr-ops-limit=9223372036854775807",
                        "-fconstexpr-loop-limit=2147483647"};
    }
    emission.emitter = "faulty/1";
    Step step{.entry = "kiln_faulty"};
    step.grid[0].value = form->M();
    for (const int tensor : {form->a, form->b, form->c})
      step.arguments.push_back({.index = tensor});
    emission.plan.steps.push_back(step);
    for (const Tensor& tensor : workload.graph.tensors) {
      if (tensor.kind == TensorKind::kTemporary) continue;
      emission.plan.tensors.push_back({.alignment = 4,
                                       .span_bytes = 4 * SpanElements(workload.graph, tensor),
                                       .written = tensor.kind == TensorKind::kOutput});
    }
    return emission;
  }

  double Predict(const Workload&, const DeviceFingerprint&,
                 const Schedule& schedule) const override {
    return schedule.family == kFamily
               ? 1e5 * (1 + static_cast<double>(schedule.knobs.at("variant")))
               : 1e5;
  }
  std::vector<std::string> families() const override { return {"faulty/1"}; }
  std::string emitter() const override { return "faulty/1"; }

 private:
  FaultyOptions options_;
  std::unique_ptr<Frontend> real_;
};

}  // namespace

const char* Print(Fault fault) {
  static const char* const kNames[] = {
      "none",         "segfault",        "endless loop", "endless memory", "writes beyond",
      "reads beyond", "half the output", "NaN",          "wrong tail",     "slow",
      "bad source",   "endless source",  "does nothing", "aborts",         "no emission"};
  return kNames[static_cast<int>(fault)];
}

Schedule FaultySchedule(Fault fault, int variant) {
  return {kFamily, 1, {{"fault", static_cast<int64_t>(fault)}, {"variant", variant}}};
}

std::unique_ptr<Frontend> MakeFaultyFrontend(const FaultyOptions& options) {
  return std::make_unique<FaultyFrontend>(options);
}

}  // namespace kiln::worker
