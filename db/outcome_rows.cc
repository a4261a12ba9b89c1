// SPDX-License-Identifier: Apache-2.0
#include "db/outcome_rows.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "db/checksum.h"
#include "db/columns.h"
#include "db/names.h"
#include "proto/contract/error.h"

namespace kiln::db {
namespace {

struct JobKey {
  int64_t workload, salt;
  std::string device, objective;
};

absl::StatusOr<JobKey> SelectJobKey(Connection& connection, absl::string_view name, int64_t id) {
  Statement select =
      connection.Query("SELECT workload, salt, device, objective FROM job WHERE id = ?", id);
  KILN_ASSIGN_OR_RETURN(const bool found, select.Step());
  if (!found) return RowNotFound("job", name);
  return JobKey{select.Integer(0), select.Integer(1), std::string(select.Text(2)),
                std::string(select.Text(3))};
}

int64_t OutcomeSum(int64_t job, int64_t epoch, int64_t sequence, absl::string_view stage,
                   absl::string_view schedule, absl::string_view toolchain,
                   absl::string_view detail) {
  return RowDigest()
      .Add(job)
      .Add(epoch)
      .Add(sequence)
      .Add(stage)
      .Add(schedule)
      .Add(toolchain)
      .Add(detail)
      .Sum();
}

absl::Status InsertOutcome(Connection& connection, int64_t job, int64_t epoch, const JobKey& key,
                           const Outcome& outcome) {
  const std::string schedule = Print(outcome.schedule);
  const std::string detail = DetailColumn(outcome);
  const absl::string_view stage = Print(outcome.stage);
  // In one statement with or without a median: the flag makes it null.
  const double median = outcome.measurement ? outcome.measurement->median_ns : 0;
  return connection.Run(
      "INSERT INTO outcome (job, epoch, sequence, workload, device, objective, salt, stage, "
      "schedule, toolchain, median_ns, detail, checksum) "
      "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, iif(?, ?, NULL), ?, ?) "
      "ON CONFLICT (job, epoch, sequence) DO NOTHING",
      job, epoch, outcome.sequence, key.workload, key.device, key.objective, key.salt, stage,
      schedule, outcome.toolchain, outcome.measurement ? 1 : 0, median, detail,
      OutcomeSum(job, epoch, outcome.sequence, stage, schedule, outcome.toolchain, detail));
}

// The columns of both selects below, in the order that ReadOutcome takes them.
#define KILN_OUTCOME_COLUMNS \
  "o.job, o.epoch, o.sequence, o.stage, o.schedule, o.toolchain, o.detail, o.checksum"

// The outcome of the present row, or nothing: damaged, and reported.
std::optional<Outcome> ReadOutcome(const Statement& row, Quarantine& quarantine) {
  Outcome outcome;
  absl::StatusOr<Schedule> schedule = ParseSchedule(row.Text(4));
  const std::optional<Stage> stage = ParseStage(row.Text(3));
  const int64_t sum = OutcomeSum(row.Integer(0), row.Integer(1), row.Integer(2), row.Text(3),
                                 row.Text(4), row.Text(5), row.Text(6));
  if (row.Integer(7) != sum || !schedule.ok() || !stage || !FromDetail(row.Text(6), &outcome)) {
    quarantine.Report(
        "outcome",
        absl::StrCat(RowName(kJobPrefix, row.Integer(0)), " ", row.Integer(1), " ", row.Integer(2)),
        "its checksum is wrong or a column is not readable");
    return std::nullopt;
  }
  outcome.schedule = *std::move(schedule);
  outcome.stage = *stage;
  outcome.sequence = static_cast<int>(row.Integer(2));
  outcome.toolchain = std::string(row.Text(5));
  return outcome;
}

}  // namespace

absl::Status InsertOutcomes(Connection& connection, absl::string_view job, int64_t epoch,
                            const std::vector<Outcome>& outcomes) {
  const std::optional<int64_t> id = ParseRowName(kJobPrefix, job);
  if (!id) return RowNotFound("job", job);
  KILN_ASSIGN_OR_RETURN(const JobKey key, SelectJobKey(connection, job, *id));
  for (const Outcome& outcome : outcomes) {
    KILN_RETURN_IF_ERROR(InsertOutcome(connection, *id, epoch, key, outcome));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<Outcome>> SelectOutcomes(Connection& connection, const Key& key,
                                                    int limit, Reading reading) {
  const KeyColumns columns(key);
  Statement select = connection.Query(
      "SELECT " KILN_OUTCOME_COLUMNS
      " FROM outcome o WHERE o.workload = (SELECT id FROM workload WHERE signature = ?) "
      "AND o.device = ? AND o.objective = ? AND o.salt = ? ORDER BY o.id DESC LIMIT ?",
      columns.signature, columns.device, columns.objective, columns.salt, limit < 0 ? 0 : limit);
  std::vector<Outcome> outcomes;
  while (true) {
    KILN_ASSIGN_OR_RETURN(const bool row, select.Step());
    if (!row) return outcomes;
    std::optional<Outcome> outcome = ReadOutcome(select, reading.quarantine);
    if (outcome) outcomes.push_back(*std::move(outcome));
  }
}

absl::StatusOr<std::vector<Blocked>> SelectBlocked(Connection& connection, const Key& key,
                                                   Reading reading) {
  Statement select = connection.Query(
      "SELECT " KILN_OUTCOME_COLUMNS
      ", min(o.id) FROM outcome o "
      "WHERE o.workload = (SELECT id FROM workload WHERE signature = ?) AND o.device = ? "
      "AND o.salt = ? AND o.stage IN ('timeout', 'crash') "
      "GROUP BY o.schedule, o.stage, o.toolchain ORDER BY min(o.id)",
      key.signature, key.device, key.salt);
  std::vector<Blocked> blocked;
  while (true) {
    KILN_ASSIGN_OR_RETURN(const bool row, select.Step());
    if (!row) return blocked;
    std::optional<Outcome> outcome = ReadOutcome(select, reading.quarantine);
    if (!outcome) continue;
    blocked.push_back({std::move(outcome->schedule), outcome->stage, outcome->toolchain});
  }
}

}  // namespace kiln::db
