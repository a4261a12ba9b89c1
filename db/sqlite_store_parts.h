// SPDX-License-Identifier: Apache-2.0
// The store as its parts make it: a reading borrows a connection and calls the *_rows functions, a
// write hands a closure of them to the writer. What takes more than that is in sqlite_store.cc.
// Thread-safe.
#pragma once

#include <atomic>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "db/answer_rows.h"
#include "db/artifact_rows.h"
#include "db/job_rows.h"
#include "db/names.h"
#include "db/open_database.h"
#include "db/operation_rows.h"
#include "db/outcome_rows.h"
#include "db/reader_pool.h"
#include "db/record_rows.h"
#include "db/sqlite_store.h"
#include "db/writer.h"
#include "proto/contract/error.h"

namespace kiln::db {

class SqliteStore final : public Store {
 public:
  SqliteStore(const SqliteOptions& options, OwnedDatabase database)
      : lock_(std::move(database.lock)),
        writer_(std::move(database.writer)),
        quarantine_(&writer_),
        readers_(options.path,
                 options.read_only ? Connection::Mode::kImmutable : Connection::Mode::kReadOnly,
                 std::max(options.max_readers, 1)) {}

  // What later calls build on: the counts, the last row number, the quarantine.
  absl::Status Load();

  absl::StatusOr<std::optional<Record>> FindPublished(const Key& key,
                                                      absl::string_view canonical) override;
  absl::StatusOr<Record> GetRecord(absl::string_view id) override {
    return Read<Record>([&](Connection& c) { return SelectRecord(c, id, reading_); });
  }
  absl::StatusOr<PageOf<Record>> ListRecords(const RecordFilter& filter,
                                             const Page& page) override {
    KILN_ASSIGN_OR_RETURN(const PageWindow window, ParsePage(page));
    return Read<PageOf<Record>>(
        [&](Connection& c) { return SelectRecords(c, filter, window, reading_); });
  }
  absl::StatusOr<bool> IsPublished(absl::string_view id) override {
    return Read<bool>([&](Connection& c) { return SelectIsPublished(c, id); });
  }
  absl::StatusOr<std::vector<DeviceFingerprint>> ListDevices() override {
    return Read<std::vector<DeviceFingerprint>>(
        [&](Connection& c) { return SelectDevices(c, reading_); });
  }
  absl::Status RememberDevice(const DeviceFingerprint& device) override {
    return writer_.Run([&](Connection& c) { return EnsureDevice(c, device).status(); });
  }

  absl::StatusOr<std::optional<StoredAnswer>> FindAnswer(absl::string_view question) override;
  absl::StatusOr<AnswerPage> ListAnswers(int64_t before, int limit) override;
  absl::StatusOr<Unanswered> ListUnanswered(int64_t version, int limit) override;
  absl::Status PutAnswers(int64_t version, int64_t upto,
                          const std::vector<StoredAnswer>& answers) override;

  absl::Status PutArtifact(const Artifact& artifact) override;
  absl::StatusOr<Artifact> GetArtifact(absl::string_view digest) override {
    return Read<Artifact>([&](Connection& c) { return SelectArtifact(c, digest, quarantine_); });
  }
  absl::StatusOr<bool> HasArtifact(absl::string_view digest) override {
    return Read<bool>([&](Connection& c) { return SelectHasArtifact(c, digest, quarantine_); });
  }

  absl::StatusOr<Job> CreateJob(Job job, Operation* operation) override;
  absl::StatusOr<Operation> AddOperation(Operation operation) override;
  absl::StatusOr<std::optional<Job>> FindLiveJob(const Key& key) override {
    return Read<std::optional<Job>>([&](Connection& c) { return SelectLiveJob(c, key, reading_); });
  }
  absl::StatusOr<Job> GetJob(absl::string_view name) override {
    return Read<Job>([&](Connection& c) { return SelectJob(c, name, reading_); });
  }
  absl::StatusOr<Operation> GetOperation(absl::string_view name) override {
    return Read<Operation>([&](Connection& c) { return SelectOperation(c, name); });
  }
  absl::StatusOr<std::optional<Operation>> FindOperation(absl::string_view client,
                                                         absl::string_view request_id) override {
    return Read<std::optional<Operation>>(
        [&](Connection& c) { return SelectRequest(c, client, request_id); });
  }
  absl::StatusOr<PageOf<Job>> ListJobs(bool live_only, const Page& page) override {
    KILN_ASSIGN_OR_RETURN(const PageWindow window, ParsePage(page));
    return Read<PageOf<Job>>(
        [&](Connection& c) { return SelectJobs(c, live_only, window, reading_); });
  }
  absl::StatusOr<PageOf<Operation>> ListOperations(const Page& page) override {
    KILN_ASSIGN_OR_RETURN(const PageWindow window, ParsePage(page));
    return Read<PageOf<Operation>>([&](Connection& c) { return SelectOperations(c, window); });
  }
  absl::Status CancelOperation(absl::string_view name) override {
    return writer_.Run([&](Connection& c) { return SetCancelled(c, name); });
  }
  absl::Status DeleteOperation(absl::string_view name) override {
    return writer_.Run([&](Connection& c) { return RemoveOperation(c, name); });
  }
  absl::Status UpdateJob(const Job& job, int64_t expected_epoch, JobState expected_state) override;
  absl::StatusOr<std::string> CompleteJob(const Completion& completion, int64_t expected_epoch,
                                          JobState expected_state) override;

  absl::Status AddOutcomes(absl::string_view job, int64_t epoch,
                           const std::vector<Outcome>& outcomes) override {
    return writer_.Run([&](Connection& c) { return InsertOutcomes(c, job, epoch, outcomes); });
  }
  absl::StatusOr<std::vector<Outcome>> ListOutcomes(const Key& key, int limit) override {
    return Read<std::vector<Outcome>>(
        [&](Connection& c) { return SelectOutcomes(c, key, limit, reading_); });
  }
  absl::StatusOr<std::vector<Blocked>> ListBlocked(const Key& key) override {
    return Read<std::vector<Blocked>>(
        [&](Connection& c) { return SelectBlocked(c, key, reading_); });
  }

  absl::StatusOr<int64_t> Salt() override {
    return Read<int64_t>([](Connection& c) { return SelectSalt(c); });
  }
  absl::Status SetSalt(int64_t salt) override;
  absl::Status ImportRecords(const std::vector<Record>& records) override;
  std::map<std::string, int64_t> Counters() override;

 private:
  template <typename T, typename F>
  absl::StatusOr<T> Read(F select) {
    absl::StatusOr<T> result = absl::UnknownError("");
    KILN_RETURN_IF_ERROR(readers_.Run([&](Connection& connection) {
      result = select(connection);
      return result.status();
    }));
    return result;
  }
  static absl::StatusOr<int64_t> SelectSalt(Connection& connection) {
    return connection.QueryInteger("SELECT value FROM setting WHERE name = 'salt'");
  }
  absl::StatusOr<std::optional<Record>> FindWithArtifacts(Connection& connection, const Key& key,
                                                          absl::string_view canonical);
  absl::StatusOr<int64_t> PublishRecord(Connection& connection, const Job& job,
                                        const Completion& completion, const RecordRow& row);

  // In the order of their lives: the lock is the last to go, the connections of readers are closed
  // before the writer's.
  InstanceLock lock_;
  Writer writer_;
  DeviceTable devices_;
  Quarantine quarantine_;
  const Reading reading_{devices_, quarantine_};
  ReaderPool readers_;
  RowNumbers numbers_;  // used by writes alone
  std::atomic<int64_t> records_{0}, artifacts_{0};
  std::atomic<int64_t> publications_{0}, answered_{0};  // the last one; the last one answered
  std::atomic<int64_t> lookups_{0}, hits_{0}, answer_hits_{0}, damaged_pages_{0};
};

}  // namespace kiln::db
