// SPDX-License-Identifier: Apache-2.0
#include "client/cli/json.h"

#include "absl/time/time.h"

namespace kiln::cli {
namespace {

std::string Text(absl::string_view text) { return std::string(text); }

const char* KindName(StepKind kind) {
  switch (kind) {
    case StepKind::kKernel:
      return "kernel";
    case StepKind::kLibrary:
      return "library";
    case StepKind::kFill:
      return "fill";
    case StepKind::kPrepack:
      return "prepack";
  }
  return "";
}

// A number, or the expression over dynamic dims.
Json CountsJson(const std::array<Count, 3>& counts) {
  Json json = Json::array();
  for (const Count& count : counts) {
    if (count.expression.empty()) {
      json.push_back(count.value);
    } else {
      json.push_back(count.expression);
    }
  }
  return json;
}

std::string TensorName(const Workload& workload, int index) {
  const auto& tensors = workload.graph.tensors;
  return index >= 0 && index < static_cast<int>(tensors.size()) ? tensors[index].name : "";
}

Json ArgumentJson(const Argument& argument, const Workload& workload) {
  switch (argument.kind) {
    case ArgumentKind::kTensor:
      return {{"kind", "tensor"},
              {"tensor", argument.index},
              {"name", TensorName(workload, argument.index)},
              {"offset", argument.offset}};
    case ArgumentKind::kDim: {
      const auto& dims = workload.graph.dims;
      const bool known = argument.index >= 0 && argument.index < static_cast<int>(dims.size());
      return {{"kind", "dim"},
              {"dim", argument.index},
              {"name", known ? dims[argument.index].name : ""}};
    }
    case ArgumentKind::kScalar:
      if (argument.is_float) return {{"kind", "scalar"}, {"scalar", argument.number}, {"name", ""}};
      return {{"kind", "scalar"}, {"scalar", argument.integer}, {"name", ""}};
    case ArgumentKind::kWorkspace:
      return {{"kind", "workspace"},
              {"workspace", argument.offset},
              {"name", argument.persistent ? "persistent" : "workspace"},
              {"persistent", argument.persistent}};
  }
  return Json::object();
}

Json PlanJson(const Plan& plan, const Workload& workload) {
  Json steps = Json::array();
  for (const Step& step : plan.steps) {
    Json arguments = Json::array();
    for (const Argument& argument : step.arguments)
      arguments.push_back(ArgumentJson(argument, workload));
    steps.push_back({{"kind", KindName(step.kind)},
                     {"entry", step.entry},
                     {"grid", CountsJson(step.grid)},
                     {"block", CountsJson(step.block)},
                     {"cluster", CountsJson(step.cluster)},
                     {"shared_bytes", step.shared_bytes},
                     {"attributes", Json(step.attributes)},
                     {"artifact", step.artifact},
                     {"arguments", arguments}});
  }
  return steps;
}

Json AlignmentJson(const Plan& plan, const Workload& workload) {
  Json json = Json::object();
  for (size_t i = 0; i < plan.tensors.size(); ++i) {
    json[TensorName(workload, static_cast<int>(i))] = plan.tensors[i].alignment;
  }
  return json;
}

Json MeasurementJson(const Measurement& m) {
  return {{"median_ns", m.median_ns},
          {"ci95_ns", {m.ci95_lo_ns, m.ci95_hi_ns}},
          {"samples", m.samples},
          {"timer", Text(Print(m.timer))},
          {"cache", m.objective.cache == CacheState::kWarm ? "warm" : "cold"},
          {"method", m.method_version},
          {"min_ns", m.min_ns},
          {"iqr_ns", m.iqr_ns},
          {"rejected", Json(m.rejected)},
          {"conditions", Json(m.conditions)}};
}

Json BaselineJson(const Baseline& baseline) {
  return {{"name", baseline.name}, {"median_ns", baseline.median_ns}, {"ratio", baseline.ratio}};
}

Json VerifiedJson(const Verification& v) {
  return {{"method", v.method},
          {"sets", v.sets},
          {"max_error", v.max_error},
          {"tolerance", v.tolerance},
          {"set_names", v.set_names}};
}

Json TrialsJson(const std::map<std::string, int64_t>& trials) {
  Json failed = Json::object();
  int64_t measured = 0;
  for (const auto& [stage, count] : trials) {
    if (stage == "measured") {
      measured = count;
    } else {
      failed[stage] = count;
    }
  }
  return {{"measured", measured}, {"failed", failed}};
}

Json DimsJson(const WorkloadSpec& spec) {
  Json json = Json::object();
  for (const auto& [name, dim] : spec.dims) {
    if (dim.is_static()) {
      json[name] = dim.lo;
    } else {
      json[name] = std::to_string(dim.lo) + ".." + std::to_string(dim.hi);
    }
  }
  return json;
}

Json ProgressJson(const Progress& p) {
  return {{"phase", p.phase},
          {"queue_position", p.queue_position},
          {"done", p.done},
          {"total", p.total},
          {"failed", Json(p.failed)},
          {"best_ns", p.best_ns},
          {"best_schedule", p.best_schedule},
          {"seconds_left", p.seconds_left},
          {"changed", TimeJson(p.changed)}};
}

Json BudgetJson(const Budget& b) {
  return {{"trials", b.trials},
          {"seconds", b.seconds},
          {"seed", b.seed},
          {"wait_worker_seconds", b.wait_worker_seconds}};
}

}  // namespace

Json TimeJson(absl::Time time) {
  if (time == absl::Time() || time == absl::InfinitePast() || time == absl::InfiniteFuture())
    return nullptr;
  return absl::FormatTime("%Y-%m-%dT%H:%M:%E*SZ", time, absl::UTCTimeZone());
}

Json RecordJson(const Record& record) {
  return {{"record", record.id},
          {"signature", record.key.signature},
          {"device", record.key.device},
          {"objective", Print(record.key.objective)},
          {"dims", DimsJson(record.spec)},
          {"schedule", Print(record.schedule)},
          {"job", record.job},
          {"median_ns", record.measurement.median_ns},
          {"baseline", BaselineJson(record.baseline)},
          {"toolchain", record.toolchain},
          {"worker", record.worker},
          {"created", TimeJson(record.created)}};
}

Json AnswerJson(const client::Answer& answer, const Workload& workload) {
  const Record& record = answer.record;
  return {{"match", Text(Print(answer.match))},
          {"signature", record.key.signature},
          {"device", record.key.device},
          {"objective", Print(record.key.objective)},
          {"schedule", Print(record.schedule)},
          {"record", record.id},
          {"job", answer.job.empty() ? record.job : answer.job},
          {"plan", PlanJson(record.plan, workload)},
          {"workspace_bytes", record.plan.workspace_bytes},
          {"persistent_bytes", record.plan.persistent_bytes},
          {"required_alignment", AlignmentJson(record.plan, workload)},
          {"features", record.plan.features},
          {"measurement", MeasurementJson(record.measurement)},
          {"baseline", BaselineJson(record.baseline)},
          {"contest", Json(record.contest)},
          {"verified", VerifiedJson(record.verification)},
          {"trials", TrialsJson(record.trials)},
          {"budget_exhausted", record.budget_exhausted},
          {"source", record.source},
          {"toolchain", record.toolchain},
          {"emitter", record.emitter},
          {"worker", record.worker},
          {"created", TimeJson(record.created)},
          {"stale_because", answer.stale_because},
          {"lookup_ns", answer.lookup_ns}};
}

Json JobJson(const Job& job) {
  Json error = nullptr;
  if (job.error_code != 0) {
    error = {{"code", absl::StatusCodeToString(static_cast<absl::StatusCode>(job.error_code))},
             {"reason", job.error_reason},
             {"message", job.error_message}};
  }
  return {{"name", job.name},
          {"state", Text(Print(job.state))},
          {"operation_count", job.operations},
          {"operations", job.operations},
          {"device", job.key.device},
          {"signature", job.key.signature},
          {"objective", Print(job.key.objective)},
          {"dims", DimsJson(job.spec)},
          {"client", job.client},
          {"priority", job.priority},
          {"force", job.force},
          {"attempts", job.attempts},
          {"losses", job.losses},
          {"worker", job.worker},
          {"budget", BudgetJson(job.budget)},
          {"progress", ProgressJson(job.progress)},
          {"record", job.record},
          {"error", error},
          {"histogram", Json(job.histogram)},
          {"created", TimeJson(job.created)},
          {"started", TimeJson(job.started)},
          {"ended", TimeJson(job.ended)}};
}

Json DeviceJson(const DeviceFingerprint& d) {
  return {{"id", DeviceId(d)},
          {"kind", d.kind == DeviceKind::kCpu ? "cpu" : "cuda"},
          {"backing", d.backing == Backing::kHardware ? "hardware" : "simulated"},
          {"name", d.name},
          {"architecture", d.architecture},
          {"model", d.model},
          {"features", d.features},
          {"cores", d.cores},
          {"threads", d.threads},
          {"vector_bits", d.vector_bits},
          {"l1d_bytes", d.l1d_bytes},
          {"l2_bytes", d.l2_bytes},
          {"l3_bytes", d.l3_bytes},
          {"memory_bytes", d.memory_bytes}};
}

Json WorkerJson(const client::WorkerState& w) {
  return {{"name", w.name},
          {"state", w.state},
          {"device", DeviceId(w.device)},
          {"host", w.host},
          {"pid", w.pid},
          {"version", w.version},
          {"toolchain", w.toolchain},
          {"timer", w.timer},
          {"job", w.job},
          {"jobs_done", w.jobs_done},
          {"seconds_since_seen", w.seconds_since_seen},
          {"fingerprint", DeviceJson(w.device)}};
}

}  // namespace kiln::cli
