// SPDX-License-Identifier: Apache-2.0
// The schedule database as the server sees it: a narrow, typed interface with one contract suite
// (tests/db/store_suite.h) that each implementation passes. SqliteStore is the one there is; a
// second engine comes when several servers share one database.
//
// Thread-safe. Reads run on the calling thread (microseconds; each thread has its own read-only
// connection or borrows one); writes are queued to one writer thread, committed in groups, and
// return when they are durable: an OK write survives kill -9 and power loss. Do not call a write
// from a gRPC reaction: use a thread that may wait.
//
// Codes, everywhere: UNAVAILABLE the disk or file system failed just now (full, I/O error), nothing
// was written (but see db/README.md of a sync that fails and a crash thereafter); DATA_LOSS a
// stored row is damaged (reads treat it as a miss, quarantine it and count it, so that only by-name
// getters return this); FAILED_PRECONDITION the store is read-only. Others are named at each
// function.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "proto/contract/job.h"
#include "proto/contract/outcome.h"
#include "proto/contract/record.h"

namespace kiln::db {

struct Page {
  int size = 100;     // clamped to 1000
  std::string token;  // "" or what the last page returned
};

template <typename T>
struct PageOf {
  std::vector<T> items;
  std::string next_token;  // "": the last page
};

struct RecordFilter {
  std::string signature, device;  // empty: any
};

struct Publication {
  std::string record;  // "" : withdrawn, the key answers nothing
  std::string kind;    // "publish", "pin", "rollback", "withdraw"
  std::string reason;  // "first", "1.034x of the incumbent", ...
};

// What ends a job, in one transaction.
struct Completion {
  Job job;                       // its final state
  std::optional<Record> record;  // inserted if present; id and created are given by the store
  std::optional<Publication>
      publication;  // of that record (its `record` is filled in by the store)
};

// What crashed or hung before and is not tried again, by family workload and toolchain.
struct Blocked {
  Schedule schedule;
  Stage stage = Stage::kCrash;
  std::string toolchain;
};

// What a lookup sends, kept beside the record that it was made of: whoever asks the very question
// gets the message. Follows from the records: losing one costs time and nothing else.
struct StoredAnswer {
  std::string question;  // what is asked, to the byte
  std::string record;    // id
  std::string signature;
  std::string toolchain, emitter;  // the record's attributes that make it stale
  int method_version = 0;
  std::string message;
};

struct AnswerPage {
  std::vector<StoredAnswer> answers;
  int64_t before = 0;  // hand it to the next ListAnswers; 0: no more are left
};

// Publications whose answers are still to be made, oldest first.
struct Unanswered {
  std::vector<Record> records;  // as FindPublished gives them; damaged ones are left out
  int publications = 0;         // that were read; fewer than were asked for: no more are left
  int64_t upto = 0;             // hand it to PutAnswers
};

class Store {
 public:
  virtual ~Store() = default;

  // --- lookups ---
  // The record published for the key, with the canonical text compared: a row whose text differs,
  // that is damaged or whose artifacts are missing is nothing. The measurement is a summary:
  // GetRecord has the samples. UNAVAILABLE only.
  virtual absl::StatusOr<std::optional<Record>> FindPublished(const Key& key,
                                                              absl::string_view canonical) = 0;
  // NOT_FOUND.
  virtual absl::StatusOr<Record> GetRecord(absl::string_view id) = 0;
  // Newest first. INVALID_ARGUMENT, here and in each list: a token of another list.
  virtual absl::StatusOr<PageOf<Record>> ListRecords(const RecordFilter& filter,
                                                     const Page& page) = 0;
  // Whether the record answers its key now, under the present salt. NOT_FOUND.
  virtual absl::StatusOr<bool> IsPublished(absl::string_view id) = 0;
  // Device fingerprints that records or workers brought, oldest first.
  virtual absl::StatusOr<std::vector<DeviceFingerprint>> ListDevices() = 0;
  virtual absl::Status RememberDevice(const DeviceFingerprint& device) = 0;

  // --- answers, kept for lookups ---
  // Of the record that answers now; nothing if none was made, its row is damaged or an artifact of
  // the record is. UNAVAILABLE only.
  virtual absl::StatusOr<std::optional<StoredAnswer>> FindAnswer(absl::string_view question) = 0;
  // Newest record first, from the start (`before` 0) or where a page ended; damaged ones are left
  // out, and all of them where an artifact is damaged.
  virtual absl::StatusOr<AnswerPage> ListAnswers(int64_t before, int limit) = 0;
  // Of up to `limit` publications. `version` is that of what makes the answers: where the stored
  // ones are of another, all are made again.
  virtual absl::StatusOr<Unanswered> ListUnanswered(int64_t version, int limit) = 0;
  // Those whose record no longer answers its key, or has an artifact that is not stored, are left
  // out. NOT_FOUND: no such record.
  virtual absl::Status PutAnswers(int64_t version, int64_t upto,
                                  const std::vector<StoredAnswer>& answers) = 0;

  // --- artifacts ---
  // INVALID_ARGUMENT if the digest is not that of the bytes. OK if it is there already.
  virtual absl::Status PutArtifact(const Artifact& artifact) = 0;
  // NOT_FOUND; DATA_LOSS if the stored bytes no longer have the digest.
  virtual absl::StatusOr<Artifact> GetArtifact(absl::string_view digest) = 0;
  virtual absl::StatusOr<bool> HasArtifact(absl::string_view digest) = 0;

  // --- jobs and operations ---
  // A new queued job and its first operation, atomically; names are given by the store.
  // ALREADY_EXISTS (detail "job") if the key has a live job: join that one; or (detail "operation",
  // also in AddOperation) if the client has used its request_id: that is its operation.
  virtual absl::StatusOr<Job> CreateJob(Job job, Operation* operation) = 0;
  // One more operation on a live or ended job. NOT_FOUND.
  virtual absl::StatusOr<Operation> AddOperation(Operation operation) = 0;
  // The live job of a key.
  virtual absl::StatusOr<std::optional<Job>> FindLiveJob(const Key& key) = 0;
  virtual absl::StatusOr<Job> GetJob(absl::string_view name) = 0;              // NOT_FOUND
  virtual absl::StatusOr<Operation> GetOperation(absl::string_view name) = 0;  // NOT_FOUND
  virtual absl::StatusOr<std::optional<Operation>> FindOperation(absl::string_view client,
                                                                 absl::string_view request_id) = 0;
  virtual absl::StatusOr<PageOf<Job>> ListJobs(bool live_only,
                                               const Page& page) = 0;              // newest first
  virtual absl::StatusOr<PageOf<Operation>> ListOperations(const Page& page) = 0;  // newest first
  virtual absl::Status CancelOperation(
      absl::string_view name) = 0;  // NOT_FOUND; OK if it was cancelled
  virtual absl::Status DeleteOperation(absl::string_view name) = 0;  // NOT_FOUND
  // Replaces the mutable part of a live job if its lease_epoch and state are still `expected_*`:
  // all but key, workload, device, client, force and created. `operations` is counted, not stored.
  // ABORTED otherwise. NOT_FOUND.
  virtual absl::Status UpdateJob(const Job& job, int64_t expected_epoch,
                                 JobState expected_state) = 0;
  // Ends a live job under the same rule, with its record and publication, all or nothing. Returns
  // the record's id ("" if none). FAILED_PRECONDITION if an artifact of the record is not stored.
  // INVALID_ARGUMENT: the state is no end, the record is not of the job's key and text, or a
  // publication comes without a record.
  virtual absl::StatusOr<std::string> CompleteJob(const Completion& completion,
                                                  int64_t expected_epoch,
                                                  JobState expected_state) = 0;

  // --- learning set ---
  // Idempotent on (job, epoch, sequence). NOT_FOUND: no such job.
  virtual absl::Status AddOutcomes(absl::string_view job, int64_t epoch,
                                   const std::vector<Outcome>& outcomes) = 0;
  virtual absl::StatusOr<std::vector<Outcome>> ListOutcomes(const Key& key,
                                                            int limit) = 0;  // newest first
  // Timeouts and crashes of the workload on the device, whatever the objective, each once.
  virtual absl::StatusOr<std::vector<Blocked>> ListBlocked(const Key& key) = 0;

  // --- the database itself ---
  virtual absl::StatusOr<int64_t> Salt() = 0;
  virtual absl::Status SetSalt(int64_t salt) = 0;  // INVALID_ARGUMENT unless it grows
  // Records imported in bulk (published if the key has none), for migration and benchmarks.
  // One transaction, all or nothing: hand over some thousands at a time. Artifacts are not asked
  // for here: a record answers once they are stored.
  virtual absl::Status ImportRecords(const std::vector<Record>& records) = 0;
  // "records", "quarantined", "wal_bytes", "commits", "commit_ns_total", ...: for metrics.
  virtual std::map<std::string, int64_t> Counters() = 0;
};

}  // namespace kiln::db
