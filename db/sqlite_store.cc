// SPDX-License-Identifier: Apache-2.0
// Writes make their columns on the calling thread and hand a closure of *_rows functions to the
// writer.
#include "db/sqlite_store.h"

#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "db/sqlite_store_parts.h"
#include "proto/contract/error.h"

namespace kiln::db {

absl::Status SqliteStore::Load() {
  int64_t last = 0;
  KILN_RETURN_IF_ERROR(writer_.Run([&](Connection& c) -> absl::Status {
    KILN_ASSIGN_OR_RETURN(last,
                          c.QueryInteger("SELECT max(ifnull((SELECT max(id) FROM record), 0), "
                                         "ifnull((SELECT max(id) FROM job), 0), "
                                         "ifnull((SELECT max(id) FROM operation), 0))"));
    KILN_ASSIGN_OR_RETURN(records_, c.QueryInteger("SELECT count(*) FROM record"));
    KILN_ASSIGN_OR_RETURN(artifacts_, c.QueryInteger("SELECT count(*) FROM artifact"));
    KILN_ASSIGN_OR_RETURN(publications_,
                          c.QueryInteger("SELECT ifnull(max(id), 0) FROM publication"));
    KILN_ASSIGN_OR_RETURN(answered_,
                          c.QueryInteger("SELECT value FROM setting WHERE name = 'answered'"));
    return quarantine_.Load(c);
  }));
  numbers_ = RowNumbers(last);
  return absl::OkStatus();
}

// --- lookups ---

absl::StatusOr<std::optional<Record>> SqliteStore::FindPublished(const Key& key,
                                                                 absl::string_view canonical) {
  ++lookups_;
  absl::StatusOr<std::optional<Record>> found = Read<std::optional<Record>>(
      [&](Connection& c) { return FindWithArtifacts(c, key, canonical); });
  if (absl::IsDataLoss(found.status())) {
    ++damaged_pages_;  // a page, not a row: nobody can say which rows it held
    return std::optional<Record>();
  }
  if (found.ok() && found->has_value()) ++hits_;
  return found;
}

absl::StatusOr<std::optional<Record>> SqliteStore::FindWithArtifacts(Connection& connection,
                                                                     const Key& key,
                                                                     absl::string_view canonical) {
  // One transaction: beginning to read costs some system calls each time.
  KILN_RETURN_IF_ERROR(connection.Run("BEGIN"));
  absl::Cleanup end = [&] { connection.Run("COMMIT").IgnoreError(); };
  KILN_ASSIGN_OR_RETURN(std::optional<Record> record,
                        SelectPublished(connection, key, canonical, reading_));
  if (!record) return record;
  for (const std::string& digest : record->artifacts) {
    KILN_ASSIGN_OR_RETURN(const bool stored, SelectHasArtifact(connection, digest, quarantine_));
    if (!stored) return std::optional<Record>();
  }
  return record;
}

// --- answers ---

absl::StatusOr<std::optional<StoredAnswer>> SqliteStore::FindAnswer(absl::string_view question) {
  absl::StatusOr<std::optional<StoredAnswer>> found = Read<std::optional<StoredAnswer>>(
      [&](Connection& c) { return SelectAnswer(c, question, quarantine_); });
  if (absl::IsDataLoss(found.status())) {
    ++damaged_pages_;
    return std::optional<StoredAnswer>();
  }
  if (found.ok() && found->has_value()) ++answer_hits_;
  return found;
}

absl::StatusOr<AnswerPage> SqliteStore::ListAnswers(int64_t before, int limit) {
  return Read<AnswerPage>(
      [&](Connection& c) { return SelectAnswers(c, before, limit, quarantine_); });
}

absl::StatusOr<Unanswered> SqliteStore::ListUnanswered(int64_t version, int limit) {
  const int64_t last = publications_;
  absl::StatusOr<Unanswered> batch = Read<Unanswered>(
      [&](Connection& c) { return SelectUnanswered(c, version, limit, reading_); });
  // Numbers that undone writes have skipped are nobody's.
  if (batch.ok() && batch->publications == 0) answered_ = last;
  return batch;
}

absl::Status SqliteStore::PutAnswers(int64_t version, int64_t upto,
                                     const std::vector<StoredAnswer>& answers) {
  KILN_RETURN_IF_ERROR(writer_.Run([&](Connection& c) -> absl::Status {
    for (const StoredAnswer& answer : answers) {
      KILN_RETURN_IF_ERROR(InsertAnswer(c, answer, quarantine_));
    }
    KILN_RETURN_IF_ERROR(c.Run("UPDATE setting SET value = ? WHERE name = 'answered'", upto));
    return c.Run("UPDATE setting SET value = ? WHERE name = 'answers_version'", version);
  }));
  answered_ = upto;
  return absl::OkStatus();
}

// --- artifacts ---

absl::Status SqliteStore::PutArtifact(const Artifact& artifact) {
  KILN_ASSIGN_OR_RETURN(const ArtifactRow row, MakeArtifactRow(artifact));
  bool stored = false;
  KILN_RETURN_IF_ERROR(writer_.Run([&](Connection& c) -> absl::Status {
    KILN_ASSIGN_OR_RETURN(stored, InsertArtifact(c, row, quarantine_));
    return absl::OkStatus();
  }));
  if (stored) ++artifacts_;
  return absl::OkStatus();
}

// --- jobs ---

absl::StatusOr<Job> SqliteStore::CreateJob(Job job, Operation* operation) {
  KILN_RETURN_IF_ERROR(writer_.Run([&](Connection& c) -> absl::Status {
    KILN_ASSIGN_OR_RETURN(std::optional<int64_t> live, FindLiveJobRow(c, job.key, reading_));
    if (live) {
      const std::string name = RowName(kJobPrefix, *live);
      return MakeError(absl::StatusCode::kAlreadyExists, absl::StrCat("the key has ", name),
                       {"JOB_EXISTS", {{"job", name}}});
    }
    const int64_t id = numbers_.Next();
    job.name = RowName(kJobPrefix, id);
    job.created = absl::FromUnixNanos(absl::ToUnixNanos(absl::Now()));
    operation->job = job.name;
    operation->created = job.created;
    KILN_RETURN_IF_ERROR(InsertJob(c, job, id, reading_));
    return InsertOperation(c, numbers_.Next(), operation);
  }));
  job.operations = operation->cancelled ? 0 : 1;
  return job;
}

absl::StatusOr<Operation> SqliteStore::AddOperation(Operation operation) {
  KILN_RETURN_IF_ERROR(writer_.Run([&](Connection& c) -> absl::Status {
    KILN_RETURN_IF_ERROR(SelectJob(c, operation.job, reading_).status());
    operation.created = absl::FromUnixNanos(absl::ToUnixNanos(absl::Now()));
    return InsertOperation(c, numbers_.Next(), &operation);
  }));
  return operation;
}

absl::Status SqliteStore::UpdateJob(const Job& job, int64_t expected_epoch,
                                    JobState expected_state) {
  return writer_.Run([&](Connection& c) -> absl::Status {
    KILN_ASSIGN_OR_RETURN(const Job stored,
                          SelectExpectedJob(c, job.name, expected_epoch, expected_state, reading_));
    return ReplaceJob(c, job, stored);
  });
}

absl::StatusOr<std::string> SqliteStore::CompleteJob(const Completion& completion,
                                                     int64_t expected_epoch,
                                                     JobState expected_state) {
  if (!IsEnd(completion.job.state)) {
    return InvalidField("JOB_NOT_ENDED", "job.state", Print(completion.job.state), "no end",
                        "succeeded, failed or cancelled");
  }
  if (completion.publication && !completion.record) {
    return InvalidField("PUBLICATION_WITHOUT_RECORD", "publication", completion.publication->kind,
                        "without a record", "a publication of the completion's own record");
  }
  std::optional<RecordRow> row;
  if (completion.record) row.emplace(*completion.record);
  std::string name;
  KILN_RETURN_IF_ERROR(writer_.Run([&](Connection& c) -> absl::Status {
    KILN_ASSIGN_OR_RETURN(
        const Job stored,
        SelectExpectedJob(c, completion.job.name, expected_epoch, expected_state, reading_));
    Job ended = completion.job;
    if (row) {
      KILN_ASSIGN_OR_RETURN(const int64_t id, PublishRecord(c, stored, completion, *row));
      name = RowName(kRecordPrefix, id);
      ended.record = name;
    }
    return ReplaceJob(c, std::move(ended), stored);
  }));
  if (row) ++records_;
  return name;
}

absl::StatusOr<int64_t> SqliteStore::PublishRecord(Connection& connection, const Job& job,
                                                   const Completion& completion,
                                                   const RecordRow& row) {
  const Record& record = *completion.record;
  if (!(record.key == job.key) || record.canonical != job.canonical) {
    return InvalidField("RECORD_OF_ANOTHER_KEY", "record.key", Print(record.key),
                        "not the job's key and text", Print(job.key));
  }
  for (const std::string& digest : record.artifacts) {
    KILN_ASSIGN_OR_RETURN(const bool stored, SelectHasArtifact(connection, digest, quarantine_));
    if (stored) continue;
    return MakeError(absl::StatusCode::kFailedPrecondition,
                     absl::StrCat("artifact ", digest, " is not stored"),
                     {"ARTIFACT_MISSING", {{"digest", digest}}});
  }
  const int64_t id = numbers_.Next();
  KILN_ASSIGN_OR_RETURN(const int64_t device, EnsureDevice(connection, record.device));
  KILN_ASSIGN_OR_RETURN(
      const int64_t workload,
      InsertRecord(connection, row, id, device, absl::ToUnixNanos(absl::Now()), quarantine_));
  if (completion.publication) {
    KILN_RETURN_IF_ERROR(InsertPublication(connection, ++publications_, row.key, workload, id,
                                           completion.publication->kind,
                                           completion.publication->reason));
  }
  return id;
}

// --- the database itself ---

absl::Status SqliteStore::SetSalt(int64_t salt) {
  return writer_.Run([&](Connection& c) -> absl::Status {
    KILN_ASSIGN_OR_RETURN(const int64_t present, SelectSalt(c));
    if (salt <= present) {
      return InvalidField("SALT_MUST_GROW", "salt", absl::StrCat(salt), "not above the present one",
                          absl::StrCat("more than ", present));
    }
    return c.Run("UPDATE setting SET value = ? WHERE name = 'salt'", salt);
  });
}

absl::Status SqliteStore::ImportRecords(const std::vector<Record>& records) {
  std::vector<RecordRow> rows;
  rows.reserve(records.size());
  for (const Record& record : records) rows.emplace_back(record);
  KILN_RETURN_IF_ERROR(writer_.Run([&](Connection& c) -> absl::Status {
    const int64_t now = absl::ToUnixNanos(absl::Now());
    const DeviceFingerprint* last = nullptr;  // most records are of the device of the one before
    int64_t device = 0;
    for (const RecordRow& row : rows) {
      const int64_t id = numbers_.Next();
      if (last == nullptr || !(*last == *row.device) || last->name != row.device->name) {
        KILN_ASSIGN_OR_RETURN(device, EnsureDevice(c, *row.device));
        last = row.device;
      }
      KILN_ASSIGN_OR_RETURN(const int64_t workload,
                            InsertRecord(c, row, id, device, now, quarantine_));
      KILN_ASSIGN_OR_RETURN(const bool published, HasPublication(c, row.key, workload));
      if (published) continue;
      KILN_RETURN_IF_ERROR(
          InsertPublication(c, ++publications_, row.key, workload, id, "publish", "imported"));
    }
    return absl::OkStatus();
  }));
  records_ += static_cast<int64_t>(rows.size());
  return absl::OkStatus();
}

std::map<std::string, int64_t> SqliteStore::Counters() {
  const Writer::Counters& w = writer_.counters();
  return {{"records", records_},
          {"artifacts", artifacts_},
          {"quarantined", quarantine_.size()},
          {"damaged_reads", quarantine_.reports()},
          {"damaged_pages", damaged_pages_},
          {"lookups", lookups_},
          {"hits", hits_},
          {"answer_hits", answer_hits_},
          {"unanswered", publications_ - answered_},
          {"commits", w.commits},
          {"commit_ns_total", w.commit_ns},
          {"writes", w.writes},
          {"write_failures", w.write_failures},
          {"checkpoints", w.checkpoints},
          {"checkpoint_ns_total", w.checkpoint_ns},
          {"wal_bytes", w.wal_bytes},
          {"readers", readers_.opened()},
          {"read_retries", readers_.retries()}};
}

absl::StatusOr<std::unique_ptr<Store>> OpenSqliteStore(const SqliteOptions& options) {
  KILN_ASSIGN_OR_RETURN(OwnedDatabase database, OpenDatabase(options, Migrations()));
  auto store = std::make_unique<SqliteStore>(options, std::move(database));
  KILN_RETURN_IF_ERROR(store->Load());
  return store;
}

}  // namespace kiln::db
