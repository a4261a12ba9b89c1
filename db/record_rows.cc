// SPDX-License-Identifier: Apache-2.0
#include "db/record_rows.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "db/answer_rows.h"
#include "db/checksum.h"
#include "db/columns.h"
#include "db/names.h"
#include "proto/contract/error.h"

namespace kiln::db {
namespace {

// The columns of a record in the order that ReadRecord and RecordSum take them.
#define KILN_RECORD_COLUMNS                                                        \
  "r.id, r.signature, r.canonical, r.device, r.objective, r.salt, r.fingerprint, " \
  "r.schedule, r.plan, r.artifacts, r.spec, r.evidence, r.created, r.checksum"
enum Column {
  kId,
  kSignature,
  kCanonical,
  kDevice,
  kObjective,
  kSalt,
  kFingerprint,
  kSchedule,
  kPlan,
  kArtifacts,
  kSpec,
  kEvidence,
  kCreated,
  kChecksum,
  kRecordColumns
};

int64_t RecordSum(int64_t id, absl::string_view signature, absl::string_view canonical,
                  absl::string_view device, absl::string_view objective, int64_t salt,
                  int64_t fingerprint, absl::string_view schedule, absl::string_view plan,
                  absl::string_view artifacts, absl::string_view spec, absl::string_view evidence,
                  int64_t created) {
  return RowDigest()
      .Add(id)
      .Add(signature)
      .Add(canonical)
      .Add(device)
      .Add(objective)
      .Add(salt)
      .Add(fingerprint)
      .Add(schedule)
      .Add(plan)
      .Add(artifacts)
      .Add(spec)
      .Add(evidence)
      .Add(created)
      .Sum();
}

int64_t PublicationSum(int64_t id, const KeyColumns& key, int64_t record) {
  return RowDigest()
      .Add(id)
      .Add(key.signature)
      .Add(key.device)
      .Add(key.objective)
      .Add(key.salt)
      .Add(record)
      .Sum();
}

// The record whose columns begin at column `at` of the present row, or why it is damaged.
absl::Status ReadRecord(Connection& connection, const Statement& row, int at, DeviceTable& devices,
                        Record* record) {
  auto text = [&](Column column) { return row.Text(at + column); };
  auto integer = [&](Column column) { return row.Integer(at + column); };
  if (integer(kChecksum) !=
      RecordSum(integer(kId), text(kSignature), text(kCanonical), text(kDevice), text(kObjective),
                integer(kSalt), integer(kFingerprint), text(kSchedule), text(kPlan),
                text(kArtifacts), text(kSpec), text(kEvidence), integer(kCreated))) {
    return absl::DataLossError("its checksum is wrong");
  }
  KILN_ASSIGN_OR_RETURN(auto device, devices.Get(connection, integer(kFingerprint)));
  absl::StatusOr<Schedule> schedule = ParseSchedule(text(kSchedule));
  absl::StatusOr<Objective> objective = ParseObjective(text(kObjective), Objective());
  record->device = *device;
  if (!schedule.ok() || !objective.ok() || !FromColumn(text(kPlan), &record->plan) ||
      !FromColumn(text(kArtifacts), &record->artifacts) ||
      !FromColumn(text(kSpec), &record->spec) || !FromEvidence(text(kEvidence), record)) {
    return absl::DataLossError("a column is not readable");
  }
  record->id = RowName(kRecordPrefix, integer(kId));
  record->key = {std::string(text(kSignature)), std::string(text(kDevice)), *objective,
                 integer(kSalt)};
  record->canonical = std::string(text(kCanonical));
  record->schedule = *std::move(schedule);
  record->created = absl::FromUnixNanos(integer(kCreated));
  return absl::OkStatus();
}

// ReadRecord with the samples, in the two columns behind.
absl::Status ReadWholeRecord(Connection& connection, const Statement& row, DeviceTable& devices,
                             Record* record) {
  KILN_RETURN_IF_ERROR(ReadRecord(connection, row, 0, devices, record));
  const absl::string_view samples = row.Text(kRecordColumns);
  if (RowDigest().Add(row.Integer(kId)).Add(samples).Sum() != row.Integer(kRecordColumns + 1) ||
      !FromColumn(samples, &record->measurement.samples_ns)) {
    return absl::DataLossError("its samples are damaged");
  }
  return absl::OkStatus();
}

#define KILN_WHOLE_RECORDS      \
  "SELECT " KILN_RECORD_COLUMNS \
  ", s.samples, s.checksum FROM record r LEFT JOIN record_samples s ON s.record = r.id WHERE "

Statement QueryRecords(Connection& connection, const RecordFilter& filter, int64_t before) {
  if (filter.signature.empty() && filter.device.empty()) {
    return connection.Query(KILN_WHOLE_RECORDS "r.id < ? ORDER BY r.id DESC", before);
  }
  if (filter.signature.empty()) {
    return connection.Query(KILN_WHOLE_RECORDS "r.id < ? AND r.device = ? ORDER BY r.id DESC",
                            before, filter.device);
  }
  if (filter.device.empty()) {
    return connection.Query(
        KILN_WHOLE_RECORDS
        "r.id < ? AND r.workload = (SELECT id FROM workload WHERE signature = ?) "
        "ORDER BY r.id DESC",
        before, filter.signature);
  }
  return connection.Query(
      KILN_WHOLE_RECORDS
      "r.id < ? AND r.workload = (SELECT id FROM workload WHERE signature = ?) AND r.device = ? "
      "ORDER BY r.id DESC",
      before, filter.signature, filter.device);
}

}  // namespace

// --- within a write ---

RecordRow::RecordRow(const Record& record)
    : key(record.key),
      canonical(record.canonical),
      device(&record.device),
      schedule(Print(record.schedule)),
      plan(ToColumn(record.plan)),
      artifacts(ToColumn(record.artifacts)),
      spec(ToColumn(record.spec)),
      evidence(EvidenceColumn(record)),
      samples(ToColumn(StoredSamples(record.measurement.samples_ns))) {}

absl::StatusOr<int64_t> InsertRecord(Connection& connection, const RecordRow& row, int64_t id,
                                     int64_t device, int64_t created, Quarantine& quarantine) {
  KILN_ASSIGN_OR_RETURN(const int64_t workload,
                        EnsureWorkload(connection, row.key.signature, row.canonical, quarantine));
  const int64_t sum = RecordSum(id, row.key.signature, row.canonical, row.key.device,
                                row.key.objective, row.key.salt, device, row.schedule, row.plan,
                                row.artifacts, row.spec, row.evidence, created);
  KILN_RETURN_IF_ERROR(connection.Run(
      "INSERT INTO record (id, workload, signature, canonical, device, objective, salt, "
      "fingerprint, schedule, plan, artifacts, spec, evidence, created, checksum) "
      "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
      id, workload, row.key.signature, row.canonical, row.key.device, row.key.objective,
      row.key.salt, device, row.schedule, row.plan, row.artifacts, row.spec, row.evidence, created,
      sum));
  KILN_RETURN_IF_ERROR(
      connection.Run("INSERT INTO record_samples (record, samples, checksum) VALUES (?, ?, ?)", id,
                     row.samples, RowDigest().Add(id).Add(row.samples).Sum()));
  return workload;
}

absl::Status InsertPublication(Connection& connection, int64_t id, const KeyColumns& key,
                               int64_t workload, std::optional<int64_t> record,
                               absl::string_view kind, absl::string_view reason) {
  KILN_RETURN_IF_ERROR(DeleteAnswer(connection, key, workload));
  return connection.Run(
      "INSERT INTO publication (id, workload, device, objective, salt, record, kind, reason, "
      "created, checksum) VALUES (?, ?, ?, ?, ?, nullif(?, -1), ?, ?, ?, ?)",
      id, workload, key.device, key.objective, key.salt, record.value_or(-1), kind, reason,
      absl::ToUnixNanos(absl::Now()), PublicationSum(id, key, record.value_or(-1)));
}

absl::StatusOr<bool> HasPublication(Connection& connection, const KeyColumns& key,
                                    int64_t workload) {
  return connection
      .Query(
          "SELECT 1 FROM publication WHERE workload = ? AND device = ? AND objective = ? "
          "AND salt = ? LIMIT 1",
          workload, key.device, key.objective, key.salt)
      .Step();
}

// --- reads ---

absl::StatusOr<std::optional<Record>> SelectPublished(Connection& connection, const Key& key,
                                                      absl::string_view canonical,
                                                      Reading reading) {
  const KeyColumns columns(key);
  Statement select = connection.Query(
      "SELECT " KILN_RECORD_COLUMNS
      ", p.id, ifnull(p.record, -1), p.checksum FROM workload w "
      "JOIN publication p ON p.workload = w.id LEFT JOIN record r ON r.id = p.record "
      "WHERE w.signature = ? AND p.device = ? AND p.objective = ? AND p.salt = ? "
      "ORDER BY p.id DESC LIMIT 1",
      columns.signature, columns.device, columns.objective, columns.salt);
  KILN_ASSIGN_OR_RETURN(const bool found, select.Step());
  if (!found) return std::optional<Record>();
  const int64_t publication = select.Integer(kRecordColumns);
  const int64_t id = select.Integer(kRecordColumns + 1);
  if (select.Integer(kRecordColumns + 2) != PublicationSum(publication, columns, id)) {
    reading.quarantine.Report("publication", absl::StrCat(publication), "its checksum is wrong");
    return std::optional<Record>();
  }
  if (id == -1) return std::optional<Record>();  // withdrawn
  auto record = std::make_optional<Record>();
  const absl::Status status = select.IsNull(kId)
                                  ? absl::DataLossError("its row is missing")
                                  : ReadRecord(connection, select, 0, reading.devices, &*record);
  if (absl::IsUnavailable(status)) return status;
  absl::string_view damage = status.message();
  if (status.ok() && !(record->key == key)) damage = "it is of another key";
  if (status.ok() && record->canonical != canonical) {
    // A wrong asker must not put a good row on the list.
    if (HasSignature(record->canonical, key.signature)) return std::optional<Record>();
    damage = "its text has another signature";
  }
  if (damage.empty()) return record;
  reading.quarantine.Report("record", RowName(kRecordPrefix, id), damage);
  return std::optional<Record>();
}

absl::StatusOr<Record> SelectRecord(Connection& connection, absl::string_view id, Reading reading) {
  const std::optional<int64_t> row = ParseRowName(kRecordPrefix, id);
  if (!row) return RowNotFound("record", id);
  Statement select = connection.Query(KILN_WHOLE_RECORDS "r.id = ?", *row);
  KILN_ASSIGN_OR_RETURN(const bool found, select.Step());
  if (!found) return RowNotFound("record", id);
  Record record;
  const absl::Status status = ReadWholeRecord(connection, select, reading.devices, &record);
  if (absl::IsDataLoss(status)) {
    return RowDamaged(reading.quarantine, "record", id, status.message());
  }
  KILN_RETURN_IF_ERROR(status);
  return record;
}

absl::StatusOr<PageOf<Record>> SelectRecords(Connection& connection, const RecordFilter& filter,
                                             const PageWindow& window, Reading reading) {
  Statement select = QueryRecords(connection, filter, window.before);
  PageOf<Record> page;
  int64_t last = 0;
  for (int seen = 0;; ++seen) {
    KILN_ASSIGN_OR_RETURN(const bool row, select.Step());
    if (!row) return page;
    if (seen == window.size) break;
    last = select.Integer(kId);
    Record record;
    const absl::Status status = ReadWholeRecord(connection, select, reading.devices, &record);
    if (status.ok()) {
      page.items.push_back(std::move(record));
    } else if (absl::IsDataLoss(status)) {
      reading.quarantine.Report("record", RowName(kRecordPrefix, last), status.message());
    } else {
      return status;
    }
  }
  page.next_token = PageToken(last);
  return page;
}

absl::StatusOr<bool> SelectAnswersItsKey(Connection& connection, int64_t record) {
  absl::StatusOr<int64_t> answers = connection.QueryInteger(
      "SELECT r.id IS (SELECT p.record FROM publication p WHERE p.workload = r.workload AND "
      "p.device = r.device AND p.objective = r.objective AND p.salt = r.salt ORDER BY p.id DESC "
      "LIMIT 1) FROM record r WHERE r.id = ?",
      record);
  KILN_RETURN_IF_ERROR(answers.status());
  return *answers == 1;
}

absl::Status SelectPublishedSince(Connection& connection, int limit, Reading reading,
                                  Unanswered* batch) {
  Statement select = connection.Query(
      "SELECT " KILN_RECORD_COLUMNS
      ", p.id FROM publication p LEFT JOIN record r ON r.id = p.record WHERE p.id > ? "
      "ORDER BY p.id LIMIT ?",
      batch->upto, limit);
  while (true) {
    KILN_ASSIGN_OR_RETURN(const bool row, select.Step());
    if (!row) return absl::OkStatus();
    ++batch->publications;
    batch->upto = select.Integer(kRecordColumns);
    if (select.IsNull(kId)) continue;  // a withdrawal
    Record record;
    const absl::Status status = ReadRecord(connection, select, 0, reading.devices, &record);
    if (status.ok()) {
      batch->records.push_back(std::move(record));
    } else if (absl::IsDataLoss(status)) {
      reading.quarantine.Report("record", RowName(kRecordPrefix, select.Integer(kId)),
                                status.message());
    } else {
      return status;
    }
  }
}

absl::StatusOr<bool> SelectIsPublished(Connection& connection, absl::string_view id) {
  const std::optional<int64_t> row = ParseRowName(kRecordPrefix, id);
  if (!row) return RowNotFound("record", id);
  absl::StatusOr<int64_t> published = connection.QueryInteger(
      "SELECT r.salt = (SELECT value FROM setting WHERE name = 'salt') AND r.id IS (SELECT "
      "p.record "
      "FROM publication p WHERE p.workload = r.workload AND p.device = r.device AND p.objective = "
      "r.objective AND p.salt = r.salt ORDER BY p.id DESC LIMIT 1) FROM record r WHERE r.id = ?",
      *row);
  if (absl::IsNotFound(published.status())) return RowNotFound("record", id);
  KILN_RETURN_IF_ERROR(published.status());
  return *published == 1;
}

}  // namespace kiln::db
