// SPDX-License-Identifier: Apache-2.0
// StoreFake: the store's contract in memory, for tests of what stands on it. It passes
// tests/db/store_suite.h as SqliteStore does. Thread-safe: one mutex.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "db/store.h"

namespace kiln::db {

class StoreFake final : public Store {
 public:
  // Every write (read) answers `status` and does nothing until it is set to OK again.
  void FailWrites(absl::Status status);
  void FailReads(absl::Status status);
  // As if the record's row were damaged: a miss in lookups and lists, DATA_LOSS by name.
  void DamageRecord(absl::string_view id);

  absl::StatusOr<std::optional<Record>> FindPublished(const Key& key,
                                                      absl::string_view canonical) override;
  absl::StatusOr<Record> GetRecord(absl::string_view id) override;
  absl::StatusOr<PageOf<Record>> ListRecords(const RecordFilter& filter, const Page& page) override;
  absl::StatusOr<bool> IsPublished(absl::string_view id) override;
  absl::StatusOr<std::vector<DeviceFingerprint>> ListDevices() override;
  absl::Status RememberDevice(const DeviceFingerprint& device) override;

  absl::StatusOr<std::optional<StoredAnswer>> FindAnswer(absl::string_view question) override;
  absl::StatusOr<AnswerPage> ListAnswers(int64_t before, int limit) override;
  absl::StatusOr<Unanswered> ListUnanswered(int64_t version, int limit) override;
  absl::Status PutAnswers(int64_t version, int64_t upto,
                          const std::vector<StoredAnswer>& answers) override;

  absl::Status PutArtifact(const Artifact& artifact) override;
  absl::StatusOr<Artifact> GetArtifact(absl::string_view digest) override;
  absl::StatusOr<bool> HasArtifact(absl::string_view digest) override;

  absl::StatusOr<Job> CreateJob(Job job, Operation* operation) override;
  absl::StatusOr<Operation> AddOperation(Operation operation) override;
  absl::StatusOr<std::optional<Job>> FindLiveJob(const Key& key) override;
  absl::StatusOr<Job> GetJob(absl::string_view name) override;
  absl::StatusOr<Operation> GetOperation(absl::string_view name) override;
  absl::StatusOr<std::optional<Operation>> FindOperation(absl::string_view client,
                                                         absl::string_view request_id) override;
  absl::StatusOr<PageOf<Job>> ListJobs(bool live_only, const Page& page) override;
  absl::StatusOr<PageOf<Operation>> ListOperations(const Page& page) override;
  absl::Status CancelOperation(absl::string_view name) override;
  absl::Status DeleteOperation(absl::string_view name) override;
  absl::Status UpdateJob(const Job& job, int64_t expected_epoch, JobState expected_state) override;
  absl::StatusOr<std::string> CompleteJob(const Completion& completion, int64_t expected_epoch,
                                          JobState expected_state) override;

  absl::Status AddOutcomes(absl::string_view job, int64_t epoch,
                           const std::vector<Outcome>& outcomes) override;
  absl::StatusOr<std::vector<Outcome>> ListOutcomes(const Key& key, int limit) override;
  absl::StatusOr<std::vector<Blocked>> ListBlocked(const Key& key) override;

  absl::StatusOr<int64_t> Salt() override;
  absl::Status SetSalt(int64_t salt) override;
  absl::Status ImportRecords(const std::vector<Record>& records) override;
  std::map<std::string, int64_t> Counters() override;

 private:
  struct StoredOutcome {
    Key key;
    Outcome outcome;
  };

  std::string NextName(absl::string_view prefix);
  std::string Insert(Record record);
  void Publish(const std::string& record);
  bool HasArtifacts(const Record& record) const;
  void Remember(const DeviceFingerprint& device);
  absl::Status CheckNewOperation(const Operation& operation) const;
  Job WithOperations(Job job) const;
  absl::StatusOr<Job*> LiveJob(absl::string_view name, int64_t epoch, JobState state);

  std::mutex mutex_;
  absl::Status write_failure_, read_failure_;
  int64_t last_id_ = 0;
  int64_t salt_ = 0;
  // Names have a fixed width and grow, so that a map's order is the order of creation.
  std::map<std::string, Record> records_;
  std::set<std::string> damaged_;
  std::map<std::string, std::string> published_;  // Print(key) -> record
  std::vector<std::string> publications_;         // records, in order
  int64_t answered_ = 0, answers_version_ = 0, answer_hits_ = 0;
  std::map<std::string, StoredAnswer> answers_;  // by record
  std::vector<DeviceFingerprint> devices_;
  std::map<std::string, Artifact> artifacts_;
  std::map<std::string, Job> jobs_;
  std::map<std::string, Operation> operations_;
  std::vector<StoredOutcome> outcomes_;
  std::set<std::tuple<std::string, int64_t, int>> outcome_ids_;
};

}  // namespace kiln::db
