// SPDX-License-Identifier: Apache-2.0
#include "worker/workshop.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <thread>
#include <utility>

#include "absl/time/clock.h"
#include "proto/contract/error.h"

namespace kiln::worker {
namespace {

constexpr size_t kReasonBytes = 1024;

void Fail(Candidate* candidate, Stage stage, absl::string_view reason) {
  candidate->outcome.stage = stage;
  candidate->outcome.reason =
      std::string(reason.substr(0, reason.find('\n')).substr(0, kReasonBytes));
}

}  // namespace

std::vector<Artifact> Candidate::Artifacts() const {
  std::vector<Artifact> artifacts;
  for (const auto& [digest, bytes] : files.artifacts)
    artifacts.push_back({digest, "elf-so", bytes});
  if (!source.empty()) artifacts.push_back({Sha256Hex(source), media, source});
  return artifacts;
}

absl::Status Workshop::Build(Candidate* candidate) const {
  Outcome& outcome = candidate->outcome;
  const double predicted = frontend_.Predict(workload_, device_, outcome.schedule);
  outcome.predicted_ns = std::isfinite(predicted) ? predicted : 0;
  const absl::Time start = absl::Now();
  absl::StatusOr<compiler::Emission> emission =
      frontend_.Emit(workload_, device_, outcome.schedule);
  outcome.emit_ns = absl::ToInt64Nanoseconds(absl::Now() - start);
  if (!emission.ok()) {
    const bool illegal =
        absl::IsFailedPrecondition(emission.status()) || absl::IsInvalidArgument(emission.status());
    Fail(candidate, illegal ? Stage::kIllegal : Stage::kEmit, emission.status().message());
    return absl::OkStatus();
  }
  candidate->plan = std::move(emission->plan);
  candidate->emitter = std::move(emission->emitter);
  const auto compiled_step = [](const Step& step) {
    return step.kind == StepKind::kKernel || step.kind == StepKind::kPrepack;
  };
  if (std::any_of(candidate->plan.steps.begin(), candidate->plan.steps.end(), compiled_step)) {
    candidate->source = std::move(emission->source);
    candidate->media = std::move(emission->media);
    outcome.toolchain = compiler_.Toolchain(emission->flags);
    KILN_ASSIGN_OR_RETURN(CompileResult result,
                          compiler_.Compile(candidate->source, emission->flags, &cancel_));
    outcome.compile_ns = absl::ToInt64Nanoseconds(result.spent);
    if (!result.artifact) {
      Fail(candidate, result.stage, result.reason);
      return absl::OkStatus();
    }
    for (Step& step : candidate->plan.steps) {
      if (compiled_step(step)) step.artifact = result.artifact->digest;
    }
    candidate->files.artifacts[result.artifact->digest] = std::move(result.artifact->bytes);
  }
  candidate->files.plan = PrintPlan(candidate->plan);
  return absl::OkStatus();
}

absl::StatusOr<std::vector<Candidate>> Workshop::Prepare(
    const std::vector<Schedule>& schedules) const {
  std::vector<Candidate> candidates(schedules.size());
  std::vector<absl::Status> errors(schedules.size());
  std::atomic<size_t> next{0};
  const auto work = [&] {
    for (size_t i = next.fetch_add(1); i < schedules.size(); i = next.fetch_add(1)) {
      candidates[i].outcome.schedule = schedules[i];
      if (cancel_.cancelled()) {
        errors[i] = absl::CancelledError("cancelled");
      } else {
        errors[i] = Build(&candidates[i]);
      }
    }
  };
  std::vector<std::thread> helpers;
  const size_t threads = std::min<size_t>(std::max(1, at_once_), schedules.size());
  for (size_t i = 1; i < threads; ++i) helpers.emplace_back(work);
  work();
  for (std::thread& helper : helpers) helper.join();
  for (absl::Status& error : errors) KILN_RETURN_IF_ERROR(error);
  return candidates;
}

}  // namespace kiln::worker
