// SPDX-License-Identifier: Apache-2.0
#include "worker/finalists.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "proto/contract/error.h"
#include "worker/measure/contest.h"
#include "worker/measure/sampler.h"

namespace kiln::worker {
namespace {

constexpr size_t kFinalists = 5;
// Times the best: what the search measured alone, and one after the other, is not more exact than
// this.
constexpr double kReach = 1.25;
// Of the time that is left when all have been verified, within bounds that make the numbers worth
// something.
constexpr double kContestShare = 0.8, kShortestContestNs = 5e8, kLongestContestNs = 5e9;

double MedianNs(const Candidate& candidate) {
  return candidate.outcome.measurement ? candidate.outcome.measurement->median_ns : 0;
}

// From the artifacts that were published, so that the very same code runs again; else from its
// schedule.
absl::StatusOr<std::optional<Candidate>> Incumbent(const Record& record, const Workshop& workshop,
                                                   JobReporter* reporter) {
  Candidate candidate;
  candidate.outcome.schedule = record.schedule;
  candidate.outcome.toolchain = record.toolchain;
  candidate.plan = record.plan;
  candidate.emitter = record.emitter;
  candidate.files.plan = PrintPlan(record.plan);
  bool complete = true;
  for (const Step& step : record.plan.steps) {
    if (step.artifact.empty() || candidate.files.artifacts.count(step.artifact) > 0) continue;
    absl::StatusOr<std::string> bytes = reporter->FetchArtifact(step.artifact);
    complete = complete && bytes.ok();
    if (bytes.ok()) candidate.files.artifacts[step.artifact] = *std::move(bytes);
  }
  if (complete) return std::optional<Candidate>(std::move(candidate));
  KILN_ASSIGN_OR_RETURN(std::vector<Candidate> rebuilt, workshop.Prepare({record.schedule}));
  if (!rebuilt.front().alive()) return std::optional<Candidate>();
  return std::optional<Candidate>(std::move(rebuilt.front()));
}

// What this worker would make of the record today may be another thing than what it is.
bool Stale(const Record& record, const Finalist& winner) {
  return record.measurement.method_version != kMethodVersion ||
         record.emitter != winner.candidate.emitter ||
         record.toolchain != winner.candidate.outcome.toolchain;
}

std::vector<Entrant> Entrants(const std::vector<Finalist>& finalists, bool library_may_win) {
  std::vector<Entrant> entrants;
  for (const Finalist& finalist : finalists) {
    entrants.push_back({.schedule = Print(finalist.candidate.schedule()),
                        .incumbent = finalist.incumbent,
                        .library = finalist.library,
                        .eligible = !finalist.library || library_may_win,
                        .rounds_ns = finalist.rounds_ns});
  }
  return entrants;
}

// Verifies all; those that fail are told and removed.
absl::Status EnterAll(std::vector<Finalist>* finalists, Bench* bench, Ledger* ledger) {
  for (auto finalist = finalists->begin(); finalist != finalists->end();) {
    KILN_ASSIGN_OR_RETURN(EnteredAnswer entered, bench->Enter({finalist->candidate.files}));
    Outcome& outcome = finalist->candidate.outcome;
    outcome.verify_ns += entered.verify_ns;
    if (entered.stage == Stage::kMeasured) {
      finalist->verification = std::move(entered.verification);
      ++finalist;
      continue;
    }
    outcome.stage = entered.stage, outcome.reason = entered.reason;
    outcome.measurement.reset();
    ledger->Record(outcome, /*trial=*/false);
    finalist = finalists->erase(finalist);
    // A death took those that had entered before with it.
    if (!bench->alive()) return absl::AbortedError("entered again");
  }
  return absl::OkStatus();
}

absl::StatusOr<ContestedAnswer> Compete(std::vector<Finalist>* finalists, Bench* bench,
                                        Ledger* ledger) {
  bool unexplained = false;
  for (; !finalists->empty(); bench->Reset()) {
    absl::Status entered = EnterAll(finalists, bench, ledger);
    if (absl::IsAborted(entered)) continue;
    KILN_RETURN_IF_ERROR(entered);
    if (finalists->empty()) break;
    ContestRequest request;
    request.total_ns = std::clamp(absl::ToDoubleNanoseconds(ledger->TimeLeft()) * kContestShare,
                                  kShortestContestNs, kLongestContestNs);
    KILN_ASSIGN_OR_RETURN(auto result, bench->Contest(request));
    if (ContestedAnswer* answer = std::get_if<ContestedAnswer>(&result)) {
      if (answer->rounds_ns.size() == finalists->size() &&
          answer->measurements.size() == finalists->size())
        return std::move(*answer);
      return absl::InternalError("the bench child answers for other entrants");
    }
    const Death& death = std::get<Death>(result);
    if (death.entrant >= 0 && death.entrant < static_cast<int64_t>(finalists->size())) {
      Outcome& outcome = (*finalists)[death.entrant].candidate.outcome;
      outcome.stage = death.stage, outcome.reason = death.reason;
      outcome.measurement.reset();
      ledger->Record(outcome, /*trial=*/false);
      finalists->erase(finalists->begin() + death.entrant);
    } else if (std::exchange(unexplained, true)) {
      return absl::UnavailableError(absl::StrCat("the finals ended twice: ", death.reason));
    }
  }
  return ContestedAnswer{};
}

}  // namespace

void Shortlist::Add(Candidate candidate) {
  best_.push_back(std::move(candidate));
  std::stable_sort(best_.begin(), best_.end(), [](const Candidate& a, const Candidate& b) {
    return MedianNs(a) < MedianNs(b);
  });
  if (best_.size() > kFinalists) best_.pop_back();
}

std::vector<Candidate> Shortlist::Take() {
  std::vector<Candidate> near = std::exchange(best_, {});
  while (near.size() > 1 && MedianNs(near.back()) > kReach * MedianNs(near.front()))
    near.pop_back();
  return near;
}

absl::StatusOr<std::vector<Finalist>> Gather(const JobLease& lease,
                                             std::vector<Candidate> shortlist,
                                             const Workshop& workshop, const HostCompiler& compiler,
                                             JobReporter* reporter) {
  // Measured by earlier jobs with this compiler: as good as this job's own, but for the code, which
  // has to be made.
  Shortlist all;
  for (Candidate& candidate : shortlist) all.Add(std::move(candidate));
  for (const Outcome& outcome : lease.known) {
    const bool comparable = outcome.stage == Stage::kMeasured && outcome.measurement &&
                            outcome.schedule.family != kLibraryFamily &&
                            outcome.measurement->method_version == kMethodVersion &&
                            outcome.measurement->objective == lease.objective &&
                            absl::StartsWith(outcome.toolchain, compiler.identity() + " ");
    if (comparable) all.Add(Candidate{.outcome = outcome});
  }
  std::vector<Finalist> finalists;
  for (Candidate& candidate : all.Take()) {
    if (candidate.files.plan.empty()) {
      KILN_ASSIGN_OR_RETURN(std::vector<Candidate> made, workshop.Prepare({candidate.schedule()}));
      if (!made.front().alive()) continue;
      candidate = std::move(made.front());
    }
    finalists.push_back({.candidate = std::move(candidate)});
  }
  if (lease.incumbent) {
    KILN_ASSIGN_OR_RETURN(std::optional<Candidate> incumbent,
                          Incumbent(*lease.incumbent, workshop, reporter));
    if (incumbent) {
      // Once is enough where this job made the same code again.
      const auto same = std::find_if(finalists.begin(), finalists.end(), [&](const Finalist& f) {
        return f.candidate.files.artifacts == incumbent->files.artifacts &&
               f.candidate.files.plan == incumbent->files.plan;
      });
      const bool library = lease.incumbent->schedule.family == kLibraryFamily;
      if (same != finalists.end()) {
        same->incumbent = true;
      } else {
        finalists.push_back(
            {.candidate = *std::move(incumbent), .incumbent = true, .library = library});
      }
    }
  }
  const bool has_library =
      std::any_of(finalists.begin(), finalists.end(), [](const Finalist& f) { return f.library; });
  if (!has_library) {
    KILN_ASSIGN_OR_RETURN(std::vector<Candidate> library,
                          workshop.Prepare({Schedule{kLibraryFamily, 1, {}}}));
    if (library.front().alive())
      finalists.push_back({.candidate = std::move(library.front()), .library = true});
  }
  return finalists;
}

absl::StatusOr<Finals> HoldFinals(std::vector<Finalist> finalists, const JobLease& lease,
                                  const Subject& subject, Bench* bench, Ledger* ledger) {
  Finals finals;
  KILN_ASSIGN_OR_RETURN(ContestedAnswer answer, Compete(&finalists, bench, ledger));
  for (size_t i = 0; i < finalists.size(); ++i) {
    finalists[i].rounds_ns = std::move(answer.rounds_ns[i]);
    finalists[i].measurement = std::move(answer.measurements[i]);
  }
  const std::vector<Entrant> entrants = Entrants(finalists, subject.workload.policy.library);
  const ContestResult result = Decide(entrants);
  finals.winner = result.winner;
  finals.finalists = std::move(finalists);
  if (finals.winner < 0) return finals;
  for (size_t i = 0; i < entrants.size(); ++i) {
    const PairedRatio ratio = Compare(entrants[finals.winner].rounds_ns, entrants[i].rounds_ns);
    if (entrants[i].incumbent) {
      finals.contest["incumbent"] = ratio.median;
      const bool stale = Stale(*lease.incumbent, finals.finalists[finals.winner]);
      const bool unbeaten =
          static_cast<int>(i) == finals.winner || !Beats(entrants[finals.winner], entrants[i]);
      finals.incumbent_stands = unbeaten && !stale;
    }
    if (entrants[i].library) {
      finals.contest["baseline"] = ratio.median;
      finals.baseline.median_ns = finals.finalists[i].measurement.median_ns;
      finals.baseline.ratio = ratio.median;
    }
  }
  return finals;
}

}  // namespace kiln::worker
