// SPDX-License-Identifier: Apache-2.0
#include "server/publication.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "proto/contract/error.h"

namespace kiln::server {
namespace {

constexpr double kLeastNoise = 0.01;
constexpr char kContest[] = "incumbent";

absl::Status Refuse(absl::string_view field, absl::string_view value, absl::string_view what,
                    absl::string_view allowed) {
  return InvalidField("RECORD_REFUSED", absl::StrCat("record.", field), value, what, allowed);
}

absl::Status CheckKey(const Job& job, const Workload& workload, const Record& record) {
  if (record.key.signature != job.key.signature || record.key.signature != workload.signature) {
    return Refuse("signature", record.key.signature, "not the job's", job.key.signature);
  }
  if (record.canonical != workload.canonical) {
    return Refuse("canonical", absl::StrCat(record.canonical.size(), " bytes"),
                  "not the job's text", "the canonical text");
  }
  if (record.key.device != job.key.device || DeviceId(record.device) != job.key.device) {
    return Refuse("device", DeviceId(record.device), "not the job's", job.key.device);
  }
  if (!(record.key.objective == job.key.objective)) {
    return Refuse("objective", Print(record.key.objective), "not the job's",
                  Print(job.key.objective));
  }
  return absl::OkStatus();
}

absl::Status CheckEvidence(const Job& job, const Record& record) {
  const Verification& v = record.verification;
  if (v.method.empty() || v.sets < 1) {
    return Refuse("verification", absl::StrCat(v.sets, " sets"), "missing",
                  "a method and at least one input set");
  }
  // Written so that NaN fails.
  if (!(v.max_error <= v.tolerance) || !std::isfinite(v.tolerance)) {
    return Refuse("verification.max_error", absl::StrCat(v.max_error), "beyond the tolerance",
                  absl::StrCat("<= ", v.tolerance));
  }
  const Measurement& m = record.measurement;
  if (!(m.median_ns > 0) || m.samples < 1) {
    return Refuse("measurement.median_ns", absl::StrCat(m.median_ns), "no time",
                  "> 0, of at least one sample");
  }
  if (!(m.objective == job.key.objective)) {
    return Refuse("measurement.objective", Print(m.objective), "not the job's",
                  Print(job.key.objective));
  }
  const bool simulated = job.device.backing == Backing::kSimulated;
  const bool gpu_timer = m.timer == Timer::kCupti || m.timer == Timer::kEvents;
  const bool fits = simulated == (m.timer == Timer::kSimulated) &&
                    (!gpu_timer || job.device.kind == DeviceKind::kCuda);
  if (!fits) {
    return Refuse("measurement.timer", Print(m.timer), absl::StrCat("no timer of ", job.key.device),
                  simulated                             ? "simulated"
                  : job.device.kind == DeviceKind::kCpu ? "clock"
                                                        : "cupti, events, clock");
  }
  return absl::OkStatus();
}

absl::Status CheckArguments(const Step& step, const std::string& at, int tensors, int dims,
                            const Plan& plan) {
  for (size_t i = 0; i < step.arguments.size(); ++i) {
    const Argument& argument = step.arguments[i];
    const std::string field = absl::StrCat(at, ".arguments[", i, "]");
    switch (argument.kind) {
      case ArgumentKind::kTensor:
        if (argument.index >= tensors) {
          return Refuse(field, absl::StrCat(argument.index), "no tensor of the workload",
                        absl::StrCat("0..", tensors - 1));
        }
        break;
      case ArgumentKind::kDim:
        if (argument.index >= dims) {
          return Refuse(field, absl::StrCat(argument.index), "no dynamic dim of the workload",
                        absl::StrCat("0..", dims - 1));
        }
        break;
      case ArgumentKind::kWorkspace: {
        const int64_t size = argument.persistent ? plan.persistent_bytes : plan.workspace_bytes;
        if (argument.offset > size) {
          return Refuse(field, absl::StrCat(argument.offset), "outside the workspace",
                        absl::StrCat("0..", size));
        }
        break;
      }
      case ArgumentKind::kScalar:
        break;
    }
  }
  return absl::OkStatus();
}

// A launch relies on what the plan says of outputs. Temporaries stand last in a graph.
absl::Status CheckTensors(const Graph& graph, const Plan& plan) {
  size_t tensors = 0;
  for (const Tensor& tensor : graph.tensors) tensors += tensor.kind != TensorKind::kTemporary;
  if (plan.tensors.size() != tensors) {
    return Refuse("plan.tensors", absl::StrCat(plan.tensors.size()),
                  "not the workload's number of tensors", absl::StrCat(tensors));
  }
  for (size_t i = 0; i < tensors; ++i) {
    const bool output = graph.tensors[i].kind == TensorKind::kOutput;
    const std::string at = absl::StrCat("plan.tensors[", i, "]");
    if (plan.tensors[i].written != output) {
      return Refuse(absl::StrCat(at, ".written"), plan.tensors[i].written ? "true" : "false",
                    "not what the workload says", output ? "true" : "false");
    }
    if (plan.tensors[i].alias_of != graph.tensors[i].alias_of) {
      return Refuse(absl::StrCat(at, ".alias_of"), absl::StrCat(plan.tensors[i].alias_of),
                    "not what the workload says", absl::StrCat(graph.tensors[i].alias_of));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckPlan(const Job& job, const Workload& workload, const Record& record) {
  const Plan& plan = record.plan;
  Plan parsed;
  std::string error;
  if (!ParsePlan(PrintPlan(plan), &parsed, &error) || !(parsed == plan)) {
    return Refuse("plan", error, "no plan", "what PrintPlan prints and ParsePlan reads");
  }
  KILN_RETURN_IF_ERROR(CheckTensors(workload.graph, plan));
  const int tensors = static_cast<int>(plan.tensors.size());
  for (const std::string& feature : plan.features) {
    if (!job.device.Has(feature)) {
      return Refuse("plan.features", feature, "no feature of the device",
                    "those of the device's fingerprint");
    }
  }
  for (size_t i = 0; i < plan.steps.size(); ++i) {
    const Step& step = plan.steps[i];
    const std::string at = absl::StrCat("plan.steps[", i, "]");
    const bool code = step.kind == StepKind::kKernel || step.kind == StepKind::kPrepack;
    const bool listed = std::find(record.artifacts.begin(), record.artifacts.end(),
                                  step.artifact) != record.artifacts.end();
    if (code && (step.entry.empty() || !listed)) {
      return Refuse(absl::StrCat(at, ".artifact"), step.artifact, "none of the record's artifacts",
                    "an uploaded one");
    }
    const Policy& policy = job.spec.policy;
    if (step.kind == StepKind::kLibrary && (!policy.library || policy.fixed_order)) {
      return Refuse(absl::StrCat(at, ".kind"), "library", "against the policy",
                    "kernel, fill, prepack");
    }
    KILN_RETURN_IF_ERROR(
        CheckArguments(step, at, tensors, static_cast<int>(workload.graph.dims.size()), plan));
  }
  return absl::OkStatus();
}

double RelativeHalfInterval(const Measurement& m) {
  if (!(m.median_ns > 0) || m.ci95_hi_ns < m.ci95_lo_ns) return 0;
  return (m.ci95_hi_ns - m.ci95_lo_ns) / 2 / m.median_ns;
}

}  // namespace

absl::Status CheckRecord(const Job& job, const Workload& workload, const Record& record) {
  KILN_RETURN_IF_ERROR(CheckKey(job, workload, record));
  KILN_RETURN_IF_ERROR(CheckEvidence(job, record));
  KILN_RETURN_IF_ERROR(CheckPlan(job, workload, record));
  if (!record.source.empty() && std::find(record.artifacts.begin(), record.artifacts.end(),
                                          record.source) == record.artifacts.end()) {
    return Refuse("source", record.source, "none of the record's artifacts",
                  "an uploaded one, or none");
  }
  return absl::OkStatus();
}

double Noise(const Record& record, const std::optional<Record>& incumbent) {
  double noise = std::max(kLeastNoise, RelativeHalfInterval(record.measurement));
  // The incumbent's interval is of another day; it counts only where the numbers mean the same.
  if (incumbent && incumbent->measurement.timer == record.measurement.timer &&
      incumbent->measurement.method_version == record.measurement.method_version) {
    noise = std::max(noise, RelativeHalfInterval(incumbent->measurement));
  }
  return noise;
}

Decision DecidePublication(const Record& record, const std::optional<Record>& incumbent,
                           bool incumbent_stale) {
  if (!incumbent) return {true, "first"};
  const double noise = Noise(record, incumbent);
  const auto contest = record.contest.find(kContest);
  if (contest == record.contest.end()) {
    if (incumbent_stale) return {true, "the incumbent is stale and was not run"};
    return {false, "it was not measured beside the incumbent"};
  }
  const double ratio = contest->second;
  const std::string text = absl::StrFormat("%.3fx of the incumbent", ratio);
  if (ratio > 1 + noise) return {true, text};
  if (incumbent_stale && ratio >= 1 - noise) return {true, absl::StrCat(text, ", which is stale")};
  return {false, absl::StrFormat("%s: not beyond the noise of %.1f %%", text, 100 * noise)};
}

}  // namespace kiln::server
