// SPDX-License-Identifier: Apache-2.0
#include "db/answer_rows.h"

#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "db/artifact_rows.h"
#include "db/checksum.h"
#include "db/columns.h"
#include "db/names.h"
#include "db/record_rows.h"
#include "proto/contract/error.h"

namespace kiln::db {
namespace {

int64_t AnswerSum(int64_t record, absl::string_view question, absl::string_view signature,
                  absl::string_view toolchain, absl::string_view emitter, int64_t method_version,
                  absl::string_view message) {
  return RowDigest()
      .Add(record)
      .Add(question)
      .Add(signature)
      .Add(toolchain)
      .Add(emitter)
      .Add(method_version)
      .Add(message)
      .Sum();
}

int64_t HashOf(absl::string_view question) { return RowDigest().Add(question).Sum(); }

#define KILN_ANSWER_COLUMNS \
  "record, question, signature, toolchain, emitter, method_version, message, checksum"

// The row that `select`, of KILN_ANSWER_COLUMNS, is at; nothing, and a report, if it is damaged.
std::optional<StoredAnswer> AnswerAt(Statement& select, Quarantine& quarantine) {
  const int64_t record = select.Integer(0);
  StoredAnswer answer{std::string(select.Text(1)), RowName(kRecordPrefix, record),
                      std::string(select.Text(2)), std::string(select.Text(3)),
                      std::string(select.Text(4)), static_cast<int>(select.Integer(5)),
                      std::string(select.Text(6))};
  const int64_t sum = AnswerSum(record, answer.question, answer.signature, answer.toolchain,
                                answer.emitter, answer.method_version, answer.message);
  if (select.Integer(7) == sum) return answer;
  quarantine.Report("answer", answer.record, "its checksum is wrong");
  return std::nullopt;
}

// Whether the record's artifacts can be had.
absl::StatusOr<bool> HasArtifacts(Connection& connection, int64_t record, Quarantine& quarantine) {
  std::vector<std::string> digests;
  {
    Statement select = connection.Query("SELECT artifacts FROM record WHERE id = ?", record);
    KILN_ASSIGN_OR_RETURN(const bool found, select.Step());
    if (!found || !FromColumn(select.Text(0), &digests)) return false;
  }
  for (const std::string& digest : digests) {
    KILN_ASSIGN_OR_RETURN(const bool stored, SelectHasArtifact(connection, digest, quarantine));
    if (!stored) return false;
  }
  return true;
}

}  // namespace

absl::Status InsertAnswer(Connection& connection, const StoredAnswer& answer,
                          Quarantine& quarantine) {
  const std::optional<int64_t> record = ParseRowName(kRecordPrefix, answer.record);
  if (!record) return RowNotFound("record", answer.record);
  absl::StatusOr<bool> wanted = SelectAnswersItsKey(connection, *record);
  if (absl::IsNotFound(wanted.status())) return RowNotFound("record", answer.record);
  KILN_RETURN_IF_ERROR(wanted.status());
  if (!*wanted) return absl::OkStatus();
  KILN_ASSIGN_OR_RETURN(*wanted, HasArtifacts(connection, *record, quarantine));
  if (!*wanted) return absl::OkStatus();
  return connection.Run(
      "INSERT OR REPLACE INTO answer (record, hash, question, signature, toolchain, emitter, "
      "method_version, message, checksum) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
      *record, HashOf(answer.question), Blob{answer.question}, answer.signature, answer.toolchain,
      answer.emitter, answer.method_version, Blob{answer.message},
      AnswerSum(*record, answer.question, answer.signature, answer.toolchain, answer.emitter,
                answer.method_version, answer.message));
}

absl::Status DeleteAnswer(Connection& connection, const KeyColumns& key, int64_t workload) {
  return connection.Run(
      "DELETE FROM answer WHERE record = (SELECT record FROM publication WHERE workload = ? AND "
      "device = ? AND objective = ? AND salt = ? ORDER BY id DESC LIMIT 1)",
      workload, key.device, key.objective, key.salt);
}

absl::StatusOr<std::optional<StoredAnswer>> SelectAnswer(Connection& connection,
                                                         absl::string_view question,
                                                         Quarantine& quarantine) {
  // Ends before anything else is asked for: a read of its own.
  std::optional<StoredAnswer> answer;
  int64_t record = 0;
  {
    Statement select = connection.Query("SELECT " KILN_ANSWER_COLUMNS " FROM answer WHERE hash = ?",
                                        HashOf(question));
    while (!answer) {
      KILN_ASSIGN_OR_RETURN(const bool found, select.Step());
      if (!found) return std::optional<StoredAnswer>();
      if (select.Text(1) != question) continue;  // another question of that hash
      record = select.Integer(0);
      answer = AnswerAt(select, quarantine);
      if (!answer) return std::optional<StoredAnswer>();
    }
  }
  // Artifacts are never deleted: they were there when the answer was made, and can only be damaged.
  if (quarantine.size() > 0) {
    KILN_ASSIGN_OR_RETURN(const bool stored, HasArtifacts(connection, record, quarantine));
    if (!stored) return std::optional<StoredAnswer>();
  }
  return answer;
}

absl::StatusOr<AnswerPage> SelectAnswers(Connection& connection, int64_t before, int limit,
                                         Quarantine& quarantine) {
  AnswerPage page;
  if (quarantine.size() > 0) return page;
  Statement select = connection.Query(
      "SELECT " KILN_ANSWER_COLUMNS " FROM answer WHERE record < ? ORDER BY record DESC LIMIT ?",
      before == 0 ? std::numeric_limits<int64_t>::max() : before, limit);
  while (true) {
    KILN_ASSIGN_OR_RETURN(const bool found, select.Step());
    if (!found) break;
    page.before = select.Integer(0);
    if (std::optional<StoredAnswer> answer = AnswerAt(select, quarantine))
      page.answers.push_back(*std::move(answer));
  }
  return page;
}

absl::StatusOr<Unanswered> SelectUnanswered(Connection& connection, int64_t version, int limit,
                                            Reading reading) {
  Unanswered batch;
  KILN_ASSIGN_OR_RETURN(
      batch.upto, connection.QueryInteger("SELECT ifnull((SELECT a.value FROM setting a JOIN "
                                          "setting v ON v.name = 'answers_version' AND v.value = ? "
                                          "WHERE a.name = 'answered'), 0)",
                                          version));
  KILN_RETURN_IF_ERROR(SelectPublishedSince(connection, limit, reading, &batch));
  return batch;
}

}  // namespace kiln::db
