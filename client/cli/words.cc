// SPDX-License-Identifier: Apache-2.0
#include "client/cli/words.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "worker/compiler/analysis/contraction.h"

namespace kiln::cli {
namespace {

// "3 failed (2 mismatch, 1 compile)", or "none failed".
std::string FailedWords(const std::map<std::string, int64_t>& counts) {
  int64_t failed = 0;
  std::vector<std::string> parts;
  for (const auto& [stage, count] : counts) {
    if (stage == "measured" || count == 0) continue;
    failed += count;
    parts.push_back(absl::StrCat(count, " ", stage));
  }
  if (failed == 0) return "none failed";
  return absl::StrCat(failed, " failed (", absl::StrJoin(parts, ", "), ")");
}

std::string DimWords(const WorkloadSpec& spec) {
  return absl::StrJoin(spec.dims, ",", [](std::string* out, const auto& dim) {
    absl::StrAppend(out, dim.first, "=", dim.second.lo);
    if (!dim.second.is_static()) absl::StrAppend(out, "..", dim.second.hi);
  });
}

int64_t CountOf(const std::map<std::string, int64_t>& counts, const std::string& stage) {
  const auto found = counts.find(stage);
  return found == counts.end() ? 0 : found->second;
}

std::string PhaseWords(const Job& job) {
  const Progress& progress = job.progress;
  if (job.state == JobState::kQueued) {
    if (progress.phase == "waiting")
      return absl::StrCat("waiting for a worker with ", job.key.device);
    return progress.queue_position > 0 ? absl::StrCat("queued, place ", progress.queue_position)
                                       : "queued";
  }
  return progress.phase.empty() ? std::string(Print(job.state)) : progress.phase;
}

}  // namespace

std::string TimeWords(double ns) {
  if (ns >= 1e9) return absl::StrFormat("%.3f s", ns / 1e9);
  if (ns >= 1e6) return absl::StrFormat("%.3f ms", ns / 1e6);
  if (ns >= 1e3) return absl::StrFormat("%.3f us", ns / 1e3);
  return absl::StrFormat("%.0f ns", ns);
}

std::optional<double> OperationsOf(const Workload& workload) {
  if (!workload.graph.is_static()) return std::nullopt;
  const auto form = compiler::MatchContraction(workload);
  if (!form.ok()) return std::nullopt;
  return 2.0 * form->Batch() * form->M() * form->N() * form->K();
}

std::string RateWords(std::optional<double> operations, double ns) {
  if (!operations.has_value() || *operations <= 0 || ns <= 0) return "";
  return absl::StrFormat(", %.1f GFLOP/s", *operations / ns);
}

std::string AnswerWords(const client::Answer& answer, const Workload& workload) {
  const Record& record = answer.record;
  const Measurement& m = record.measurement;
  std::string text = absl::StrCat(workload.graph.name, " ", DimWords(workload.spec), ": ",
                                  Print(answer.match), ", record ", record.id, "\n");
  absl::StrAppend(&text, "  schedule   ", Print(record.schedule), "\n");
  absl::StrAppend(&text, "  median     ", TimeWords(m.median_ns),
                  RateWords(OperationsOf(workload), m.median_ns),
                  " (95 %: ", TimeWords(m.ci95_lo_ns), " to ", TimeWords(m.ci95_hi_ns), "; ",
                  m.samples, " samples, ", Print(record.key.objective), ")\n");
  if (record.baseline.name.empty()) {
    absl::StrAppend(&text, "  baseline   none was present\n");
  } else {
    absl::StrAppend(
        &text, "  baseline   ", record.baseline.name, " ", TimeWords(record.baseline.median_ns),
        absl::StrFormat(": %.2f times the winner's, round by round\n", record.baseline.ratio));
  }
  absl::StrAppend(&text, "  verified   ", record.verification.method, " on ",
                  record.verification.sets,
                  absl::StrFormat(" input sets, largest error %.3g of %.3g\n",
                                  record.verification.max_error, record.verification.tolerance));
  absl::StrAppend(&text, "  trials     ", CountOf(record.trials, "measured"), " measured, ",
                  FailedWords(record.trials),
                  record.budget_exhausted ? "; ended by its budget\n" : "\n");
  absl::StrAppend(&text, "  device     ", record.key.device, record.device.name.empty() ? "" : " ",
                  record.device.name, ", ", record.device.threads, " threads\n");
  absl::StrAppend(&text, "  toolchain  ", record.toolchain, "\n");
  absl::StrAppend(&text, "  job        ", answer.job.empty() ? record.job : answer.job, "\n");
  if (!answer.stale_because.empty()) {
    absl::StrAppend(&text, "  stale      ", absl::StrJoin(answer.stale_because, "; "), "\n");
  }
  return text;
}

std::string JobWords(const Job& job) {
  std::string text =
      absl::StrCat(job.name, ": ", Print(job.state), ", ", ProgressWords(job, std::nullopt), "\n");
  absl::StrAppend(&text, "  workload   ", DimWords(job.spec), " (", job.key.signature, ")\n");
  absl::StrAppend(&text, "  device     ", job.key.device, ", ", Print(job.key.objective), "\n");
  absl::StrAppend(&text, "  interest   ", job.operations, " operations; asked first by ",
                  job.client, "\n");
  if (!job.worker.empty()) absl::StrAppend(&text, "  worker     ", job.worker, "\n");
  for (const std::string& loss : job.losses) absl::StrAppend(&text, "  lost       ", loss, "\n");
  if (!job.histogram.empty()) {
    absl::StrAppend(&text, "  trials     ", CountOf(job.histogram, "measured"), " measured, ",
                    FailedWords(job.histogram), "\n");
  }
  if (!job.record.empty()) absl::StrAppend(&text, "  record     ", job.record, "\n");
  if (job.error_code != 0)
    absl::StrAppend(&text, "  error      ", job.error_reason, ": ", job.error_message, "\n");
  return text;
}

std::string JobLines(const std::vector<Job>& jobs) {
  std::string text;
  for (const Job& job : jobs) {
    absl::StrAppend(&text,
                    absl::StrFormat("%-22s %-10s %4d operations  %s  ", job.name,
                                    std::string(Print(job.state)), job.operations, job.key.device),
                    DimWords(job.spec), "  ", ProgressWords(job, std::nullopt), "\n");
  }
  return text.empty() ? "no jobs\n" : text;
}

std::string RecordLines(const std::vector<Record>& records) {
  std::string text;
  for (const Record& record : records) {
    absl::StrAppend(&text, record.id, "  ", record.key.device, "  ", Print(record.key.objective),
                    "  ", DimWords(record.spec), "  ", TimeWords(record.measurement.median_ns),
                    "  ", Print(record.schedule), "\n");
  }
  return text.empty() ? "no records\n" : text;
}

std::string WorkerLines(const std::vector<client::WorkerState>& workers) {
  std::string text;
  for (const client::WorkerState& worker : workers) {
    absl::StrAppend(&text, worker.name, "  ", worker.state, "  ", DeviceId(worker.device), "  ",
                    worker.device.name, ", ", worker.device.threads, " threads  ", worker.toolchain,
                    worker.job.empty() ? "" : "  ", worker.job, "\n");
  }
  return text.empty() ? "no workers\n" : text;
}

std::string ProgressWords(const Job& job, std::optional<double> operations) {
  const Progress& progress = job.progress;
  std::string text = PhaseWords(job);
  if (progress.total > 0) absl::StrAppend(&text, " ", progress.done, "/", progress.total);
  if (progress.best_ns > 0) {
    absl::StrAppend(&text, ", best ", TimeWords(progress.best_ns),
                    RateWords(operations, progress.best_ns));
  }
  if (!progress.failed.empty()) absl::StrAppend(&text, ", ", FailedWords(progress.failed));
  if (job.state == JobState::kRunning && progress.seconds_left > 0) {
    absl::StrAppend(&text, absl::StrFormat(", %.0f s left", progress.seconds_left));
  }
  return text;
}

}  // namespace kiln::cli
