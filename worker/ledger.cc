// SPDX-License-Identifier: Apache-2.0
#include "worker/ledger.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "proto/contract/error.h"

namespace kiln::worker {

Ledger::Ledger(const JobLease& lease, JobReporter* reporter, const CancelToken& cancel)
    : reporter_(reporter), cancel_(cancel), start_(absl::Now()), sequence_(lease.first_sequence) {}

void Ledger::Tell() {
  const Budget budget = reporter_->CurrentBudget();
  progress_.total = space_ > 0 ? std::min(budget.trials, space_) : budget.trials;
  progress_.total = std::max(progress_.total, progress_.done);
  progress_.seconds_left = absl::ToDoubleSeconds(TimeLeft());
  progress_.changed = absl::Now();
  reporter_->Update(progress_);
}

void Ledger::Enter(const std::string& phase) {
  progress_.phase = phase;
  search_start_ = absl::Now();
  Tell();
}

absl::Duration Ledger::TimeLeft() {
  const absl::Duration whole = absl::Seconds(reporter_->CurrentBudget().seconds);
  return std::max(absl::ZeroDuration(), whole - (absl::Now() - start_));
}

bool Ledger::MayTry() {
  if (cancel_.cancelled()) return false;
  if (progress_.done == 0) return true;
  ended_by_budget_ = progress_.done >= reporter_->CurrentBudget().trials || TimeLeft() <= reserve_;
  return !ended_by_budget_;
}

int Ledger::BatchSize(int most) {
  const int64_t trials = std::max<int64_t>(1, reporter_->CurrentBudget().trials - progress_.done);
  int64_t size = std::min<int64_t>(trials, most);
  // The first answer comes soon; later batches last no longer than what is left.
  if (progress_.done == 0) return static_cast<int>(std::min<int64_t>(size, 2));
  const double each =
      absl::ToDoubleSeconds(absl::Now() - search_start_) / static_cast<double>(progress_.done);
  const double left = absl::ToDoubleSeconds(TimeLeft() - reserve_);
  if (each > 0) size = std::min(size, static_cast<int64_t>(left / each));
  return static_cast<int>(std::max<int64_t>(1, size));
}

void Ledger::Record(Outcome outcome, bool trial) {
  outcome.sequence = sequence_++;
  ++histogram_[std::string(Print(outcome.stage))];
  const bool measured = outcome.stage == Stage::kMeasured;
  if (trial) ++progress_.done;
  if (!measured) ++progress_.failed[std::string(Print(outcome.stage))];
  if (trial && measured && outcome.measurement &&
      (progress_.best_ns == 0 || outcome.measurement->median_ns < progress_.best_ns)) {
    progress_.best_ns = outcome.measurement->median_ns;
    progress_.best_schedule = Print(outcome.schedule);
  }
  if (outcome.stage == Stage::kCompile && compiler_message_.empty())
    compiler_message_ = outcome.reason;
  if (!measured && other_message_.empty()) other_message_ = outcome.reason;
  reporter_->Report(outcome);
  Tell();
}

absl::Status Ledger::NothingWorked() const {
  ErrorInfo info{"ALL_CANDIDATES_FAILED", {}};
  std::string counts;
  for (const auto& [stage, count] : histogram_) {
    absl::StrAppend(&counts, counts.empty() ? "" : ", ", stage, ": ", count);
    info.details[stage] = absl::StrCat(count);
  }
  if (counts.empty()) counts = "none was proposed";
  const std::string& first = compiler_message_.empty() ? other_message_ : compiler_message_;
  if (!first.empty()) info.details["first_message"] = first;
  return MakeError(
      absl::StatusCode::kFailedPrecondition,
      absl::StrCat("no candidate passed (", counts, ")", first.empty() ? "" : "; first: ", first),
      std::move(info));
}

}  // namespace kiln::worker
