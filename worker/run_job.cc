// SPDX-License-Identifier: Apache-2.0
// Map: Run is the story, RunJob its frame. Subject (subject.h) is what analysis finds; Workshop
// (workshop.h) makes candidates of schedules; Bench (bench.h) verifies and measures them in a child
// process; Ledger (ledger.h) keeps the budget and tells of progress; the finals (finalists.h)
// decide; Winner turns a finalist into a record.
#include "worker/run_job.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "client/runtime/kiln_runtime.h"
#include "proto/contract/error.h"
#include "worker/bench.h"
#include "worker/compiler/search/search.h"
#include "worker/finalists.h"
#include "worker/ledger.h"
#include "worker/subject.h"
#include "worker/version.h"
#include "worker/workshop.h"

namespace kiln::worker {
namespace {

constexpr int64_t kMostTrials = 1 << 30;
constexpr int kBatch = 8;  // candidates prepared at once
// A candidate that runs so many times longer than the best hangs, for all that matters; at least
// kShortestLimit.
constexpr double kHangs = 2000;
constexpr absl::Duration kShortestLimit = absl::Seconds(2);
// A first launch beyond ten times the best, and this, is not verified further.
constexpr double kFarOff = 10, kFarOffNs = 10e6;
constexpr double kContestSeconds = 3;

// Crashed or hung under the compiler at hand: not tried again. One that another compiler broke is.
compiler::SearchOptions WhatIsKnown(const JobLease& lease, const Subject& subject,
                                    const HostCompiler& compiler) {
  compiler::SearchOptions options;
  options.seed = lease.budget.seed;
  options.max_trials = static_cast<int>(std::clamp<int64_t>(lease.budget.trials, 1, kMostTrials));
  if (lease.incumbent && subject.space->Check(lease.incumbent->schedule).ok())
    options.seeds.push_back(lease.incumbent->schedule);
  options.seeds.push_back(subject.space->default_schedule());
  const auto same_compiler = [&](const std::string& toolchain) {
    return absl::StartsWith(toolchain, compiler.identity() + " ");
  };
  for (const Outcome& outcome : lease.known) {
    if (!same_compiler(outcome.toolchain)) continue;
    const bool deadly = outcome.stage == Stage::kCrash || outcome.stage == Stage::kTimeout ||
                        outcome.stage == Stage::kOutOfBounds;
    if (deadly) options.blocked.push_back(outcome.schedule);
    if (outcome.stage != Stage::kMeasured) continue;
    options.known.push_back(outcome);
  }
  for (const Blocked& blocked : lease.blocklist) {
    if (same_compiler(blocked.toolchain)) options.blocked.push_back(blocked.schedule);
  }
  return options;
}

// Verify and measure one that has been built; its outcome is complete afterwards.
absl::Status Try(Candidate* candidate, Bench* bench, double best_ns, absl::Duration run_limit) {
  if (!candidate->alive()) return absl::OkStatus();
  TryRequest request{.files = candidate->files, .best_ns = best_ns};
  absl::Duration limit = run_limit;
  if (best_ns > 0) {
    request.launch_limit_ns = static_cast<int64_t>(std::max(kFarOff * best_ns, kFarOffNs));
    limit = std::clamp(absl::Nanoseconds(kHangs * best_ns), kShortestLimit,
                       std::max(kShortestLimit, run_limit));
  }
  request.total_ns = 5e8;
  KILN_ASSIGN_OR_RETURN(TriedAnswer tried, bench->Try(request, limit));
  Outcome& outcome = candidate->outcome;
  outcome.stage = tried.stage;
  outcome.reason = tried.reason.substr(0, 1024);
  outcome.measurement = std::move(tried.measurement);
  outcome.verify_ns = tried.verify_ns;
  outcome.measure_ns = tried.measure_ns;
  return absl::OkStatus();
}

// Propose, emit, compile; then, while nothing compiles, verify and measure; observe; until the
// budget or the search ends it.
absl::Status Explore(const JobLease& lease, const JobTools& tools, const Subject& subject,
                     const Workshop& workshop, JobReporter* reporter, Bench* bench, Ledger* ledger,
                     Shortlist* shortlist) {
  compiler::SearchOptions options = WhatIsKnown(lease, subject, *tools.compiler);
  const auto predict = [&](const Schedule& schedule) {
    return tools.frontend->Predict(subject.workload, subject.device, schedule);
  };
  std::unique_ptr<compiler::Search> search = compiler::MakeSearch(*subject.space, options, predict);
  while (ledger->MayTry()) {
    KILN_ASSIGN_OR_RETURN(std::vector<Candidate> batch,
                          workshop.Prepare(search->Propose(ledger->BatchSize(kBatch))));
    if (batch.empty()) {
      // Out of trials; a caller who joined may have raised them: go on from what is known by now.
      const int64_t trials = std::min<int64_t>(reporter->CurrentBudget().trials, kMostTrials);
      if (search->StopReason() != "trials" || trials <= options.max_trials) break;
      options.max_trials = static_cast<int>(trials);
      search = compiler::MakeSearch(*subject.space, options, predict);
      continue;
    }
    for (Candidate& candidate : batch) {
      if (!ledger->MayTry()) break;
      KILN_RETURN_IF_ERROR(Try(&candidate, bench, ledger->best_ns(), tools.run_limit));
      ledger->Record(candidate.outcome);
      search->Observe(candidate.outcome);
      if (candidate.alive()) {
        options.known.push_back(candidate.outcome);
        shortlist->Add(std::move(candidate));
      } else {
        options.blocked.push_back(candidate.schedule());
      }
    }
  }
  return absl::OkStatus();
}

// Seconds that the finals will take, once it is known what a reference set costs.
absl::Duration Reserve(const Budget& budget, const ReadyAnswer& ready) {
  const double sets_left = static_cast<double>(std::max<int64_t>(0, ready.sets - 2));
  const double references = static_cast<double>(ready.reference_ns) * 1e-9 / 2 * sets_left;
  return absl::Seconds(std::min(budget.seconds * 0.5,
                                std::min(kContestSeconds, budget.seconds * 0.2) + 2 * references));
}

JobEnd Winner(const JobLease& lease, const JobTools& tools, const Subject& subject,
              const Finals& finals, const Ledger& ledger, const std::string& library) {
  const Finalist& winner = finals.finalists[finals.winner];
  JobEnd end{.kind = JobEnd::kRecord, .artifacts = winner.candidate.Artifacts()};
  Record& record = end.record;
  record.key = {lease.signature, DeviceId(tools.device), lease.objective, 0};
  record.canonical = subject.workload.canonical;
  record.spec = lease.spec;
  record.device = tools.device;
  record.schedule = winner.candidate.schedule();
  record.plan = winner.candidate.plan;
  for (const Artifact& artifact : end.artifacts) {
    record.artifacts.push_back(artifact.digest);
    if (absl::StartsWith(artifact.media, "source/")) record.source = artifact.digest;
  }
  record.measurement = winner.measurement;
  record.verification = winner.verification;
  record.baseline = finals.baseline;
  if (record.baseline.median_ns > 0) record.baseline.name = library;
  record.contest = finals.contest;
  record.toolchain = winner.candidate.outcome.toolchain;
  record.emitter = winner.candidate.emitter;
  record.kiln_version = kVersion;
  record.worker = tools.worker;
  record.job = lease.job;
  record.trials = ledger.histogram();
  record.budget_exhausted = ledger.ended_by_budget();
  record.seed = lease.budget.seed;
  record.created = absl::Now();
  return end;
}

absl::StatusOr<JobEnd> Run(const JobLease& lease, const JobTools& tools, JobReporter* reporter,
                           const CancelToken& cancel, Ledger* ledger) {
  // Analyse, match a family, lay out its space.
  ledger->Enter("analysing");
  KILN_ASSIGN_OR_RETURN(const TempFolder folder, TempFolder::Make(*tools.temp_root));
  KILN_ASSIGN_OR_RETURN(const Subject subject, Analyse(lease, tools.device, *tools.frontend,
                                                       *tools.compiler, folder.path(), cancel));
  ledger->set_space(subject.schedules);
  const Workshop workshop(subject.workload, subject.device, *tools.frontend, *tools.compiler,
                          tools.compile_at_once, cancel);
  Bench bench({.binary = tools.binary,
               .launch_limit = tools.run_limit,
               .memory_bytes = subject.memory_bytes},
              *tools.temp_root, subject.setup, cancel);
  KILN_ASSIGN_OR_RETURN(const ReadyAnswer ready, bench.Ready());
  ledger->set_reserve(Reserve(lease.budget, ready));

  // Search the space.
  ledger->Enter("searching");
  Shortlist shortlist;
  KILN_RETURN_IF_ERROR(
      Explore(lease, tools, subject, workshop, reporter, &bench, ledger, &shortlist));
  if (cancel.cancelled()) return absl::CancelledError("cancelled");

  // Finals: the best, the incumbent and the library, verified in full and measured in the same
  // rounds.
  ledger->Enter("finalists");
  KILN_ASSIGN_OR_RETURN(std::vector<Finalist> finalists,
                        Gather(lease, shortlist.Take(), workshop, *tools.compiler, reporter));
  if (std::all_of(finalists.begin(), finalists.end(),
                  [](const Finalist& f) { return f.library && !f.incumbent; }))
    return ledger->NothingWorked();
  KILN_ASSIGN_OR_RETURN(const Finals finals,
                        HoldFinals(std::move(finalists), lease, subject, &bench, ledger));
  if (finals.winner < 0) return ledger->NothingWorked();

  // The winner becomes a record, or the incumbent stands.
  ledger->Enter("publishing");
  if (finals.incumbent_stands) return JobEnd{.kind = JobEnd::kKeep, .record = *lease.incumbent};
  return Winner(lease, tools, subject, finals, *ledger, ready.library);
}

}  // namespace

JobEnd RunJob(const JobLease& lease, const JobTools& tools, JobReporter* reporter,
              const CancelToken& cancel) {
  Ledger ledger(lease, reporter, cancel);
  absl::StatusOr<JobEnd> end = Run(lease, tools, reporter, cancel, &ledger);
  if (!end.ok()) {
    end = JobEnd{.kind = cancel.cancelled() ? JobEnd::kCancelled : JobEnd::kFailed,
                 .error = end.status()};
  }
  end->progress = ledger.progress();
  return *std::move(end);
}

}  // namespace kiln::worker
