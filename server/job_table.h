// SPDX-License-Identifier: Apache-2.0
// The live jobs, in memory over the store: one per key, however many ask. The store is the durable
// log of it; the server owns the database, so that memory is the truth about what lives. What has
// ended is read from the store and held no longer.
//
// Thread-safe. Functions marked (writes) wait for the store's commit: call them from the work pool,
// never from a gRPC reaction. The table's lock is not held during a write; instead one *claim* per
// job serialises its changes. Watchers are called without locks, from whatever thread changed the
// job.
//
// Codes: NOT_FOUND names the job or operation; ABORTED (LEASE_LOST) the lease is not the job's
// present one; those of the store.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "db/store.h"
#include "proto/contract/job.h"
#include "server/clock.h"
#include "server/counters.h"
#include "server/fair_share.h"

namespace kiln::server {

struct JobLimits {
  int max_jobs = 10'000;  // live ones
  int max_jobs_per_client = 5'000;
  int max_operations_per_job = 50'000;
  int max_losses = 3;
  absl::Duration lease_expiry = absl::Seconds(10);
  absl::Duration reconnect_grace =
      absl::Seconds(10);  // more, once, for leases found at the server's start
};

class JobTable {
 public:
  JobTable(db::Store* store, const Clock* clock, JobLimits limits, Counters* counters);
  ~JobTable();

  // Reads the live jobs; before anything else. A running one keeps its lease if its worker reports
  // in time.
  absl::Status Recover();

  // --- interest ---
  struct Placed {
    Job job;
    Operation operation;
    bool joined = false;  // the job was there before
  };
  // (writes) The live job of `proposal.key`, or a new one, and an operation of the caller's own on
  // it. A joiner raises its budget. RESOURCE_EXHAUSTED (QUEUE_FULL, CLIENT_QUEUE_FULL,
  // WAITERS_FULL) at the limits. A used request_id gives its operation.
  absl::StatusOr<Placed> FindOrCreate(const Job& proposal, Operation operation);
  // (writes) Withdraws one operation; a job without any stops, its outcomes kept. OK if it was
  // withdrawn or done before.
  absl::Status CancelOperation(const std::string& name);
  // (writes) FAILED_PRECONDITION (OPERATION_NOT_DONE) while its job runs for it.
  absl::Status DeleteOperation(const std::string& name);

  // --- reading ---
  struct OperationView {
    Operation operation;
    Job job;
    bool done() const { return operation.cancelled || IsEnd(job.state); }
    absl::Status result() const;  // of a done one
  };
  absl::StatusOr<Job> GetJob(const std::string& name);
  absl::StatusOr<OperationView> GetOperation(const std::string& name);
  std::vector<Job> LiveJobs();

  // Calls `watcher` when the operation is done and, if `every_change`, at each change of its job.
  // Returns 0 if it is done already; `view` is the state at that moment. After a call with `done`
  // there is no other; one that is under way may still arrive after Unwatch, so a watcher owns what
  // it touches.
  using Watcher =
      std::function<void(const std::shared_ptr<const Job>& job, bool done, bool cancelled)>;
  absl::StatusOr<int64_t> Watch(const std::string& operation, bool every_change, Watcher watcher,
                                OperationView* view);
  void Unwatch(int64_t id);

  // --- leases ---
  struct Leased {
    Job job;
    Budget left;  // of the budget, for this lease
    int first_sequence = 0;
  };
  // (writes) The next queued job for the device, by fair share, leased to `worker`. Nothing if none
  // waits.
  absl::StatusOr<std::optional<Leased>> LeaseNext(const std::string& device,
                                                  const std::string& worker);
  std::set<std::string> QueuedDevices();
  // A worker that asks again while it holds a lease receives it again.
  std::optional<Leased> LeaseOf(const std::string& worker);
  // OK: the worker, back after a restart of the server, goes on.
  absl::Status KeepLease(const std::string& job, const std::string& worker, int64_t epoch);
  struct Directive {
    bool cancel = false;
    std::optional<Budget> budget;  // raised since the lease began: what it may use in all
  };
  absl::StatusOr<Directive> Heartbeat(const std::string& job, const std::string& worker,
                                      int64_t epoch, const Progress& progress);
  // (writes) Facts: from old leases and of ended jobs too. INVALID_ARGUMENT: an epoch that never
  // was.
  absl::Status ReportOutcomes(const std::string& job, int64_t epoch,
                              const std::vector<Outcome>& outcomes);
  // (writes) No attempt is counted.
  absl::Status ReleaseLease(const std::string& job, const std::string& worker, int64_t epoch);
  // (writes) Counts an attempt; the third fails the job.
  absl::Status LoseLease(const std::string& job, const std::string& worker, int64_t epoch,
                         const std::string& why);
  // The job as it is, if the lease is its present one.
  absl::StatusOr<Job> GetLeased(const std::string& job, const std::string& worker, int64_t epoch);
  // (writes) Ends a leased job: `end` is the step that does it; record and publication go with it.
  // `committed` is called with the record's id when all is durable and before anyone is told.
  // Returns the job as ended.
  absl::StatusOr<Job> Complete(const std::string& job, const std::string& worker, int64_t epoch,
                               std::optional<Record> record,
                               std::optional<db::Publication> publication,
                               const std::function<void(Job*)>& end,
                               const std::function<void(const std::string& record)>& committed);

  // --- time ---
  struct Expired {
    std::string job, worker, why;
    int64_t epoch = 0;
  };
  std::vector<Expired> ExpiredLeases();
  // (writes) Fails queued jobs for which no worker came: `last_present` is when a worker of the
  // device was last there.
  void FailUnserved(const std::function<absl::Time(const std::string& device)>& last_present,
                    absl::Time server_start);
  // (writes) Stops jobs that nobody wants any more and that a failed write or a crash left alive.
  void StopUnwanted();
  // (writes) Persists the time used by running leases, so that a restart does not give it back.
  void Checkpoint();

  struct Depth {
    int queued = 0, running = 0, operations = 0, watchers = 0;
    double oldest_queued_seconds = 0;
  };
  std::map<std::string, Depth> DepthByDevice();

  // Checks what must always hold; an empty text if it does. For tests.
  std::string CheckInvariants();

 private:
  struct Entry;
  struct WatchEntry;
  class Claim;
  struct Call;  // of a watcher, to be made without the lock
  using Step = std::function<void(Job*)>;

  absl::StatusOr<Placed> Join(const std::string& name, const Job& proposal, Operation operation);
  absl::StatusOr<Placed> Create(const Job& proposal, Operation operation);
  absl::StatusOr<Placed> Repeat(const absl::Status& exists);
  absl::Status CheckRoom(const Job& proposal) const;
  absl::Status StopIfUnwanted(const std::string& name);
  // Tries the step on a copy, persists it, applies it, tells the watchers. The claim must be held.
  absl::StatusOr<Job> Write(Claim& claim, const Step& step,
                            std::optional<Record> record = std::nullopt,
                            std::optional<db::Publication> publication = std::nullopt,
                            const std::function<void(const std::string&)>& committed = nullptr);
  std::vector<Call> Retire(std::unordered_map<std::string, std::unique_ptr<Entry>>::iterator it);
  std::vector<Call> CallsOf(Entry& entry);
  Job Shown(const Entry& entry) const;  // with place in the queue and time left
  absl::Status CheckLease(const Entry* entry, const std::string& name, const std::string& worker,
                          int64_t epoch) const;
  absl::Status LeaseLost(const std::string& name, const std::string& worker, int64_t epoch) const;
  double LeasedSeconds(const Entry& entry) const;
  Leased LeasedCopy(const Entry& entry) const;
  Executing ExecutingLocked() const;
  static void MakeCalls(std::vector<Call> calls);
  Entry* Find(const std::string& name) const;

  db::Store* const store_;
  const Clock* const clock_;
  const JobLimits limits_;
  Counters* const counters_;

  mutable std::mutex mutex_;
  std::condition_variable changed_;  // a claim was given back, a creation ended
  std::unordered_map<std::string, std::unique_ptr<Entry>> jobs_;  // by name
  std::unordered_map<std::string, std::string>
      by_key_;  // Print(key) -> name; "" while it is being created
  std::unordered_map<int64_t, std::string> watched_;  // watch -> job
  int64_t last_watch_ = 0;
};

}  // namespace kiln::server
