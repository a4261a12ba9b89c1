// SPDX-License-Identifier: Apache-2.0
// Kiln's client library: look schedules up, have them tuned, load and launch what was found.
//
//   auto client = kiln::client::Client::Make({.server = "tuner:7600"});
//   auto answer = client->GetSchedule({.workload = spec});       // never tunes; NOT_FOUND: not
//   tuned yet auto pool = kiln::client::ThreadPool::Make(0); auto kernel =
//   kiln::client::LoadedKernel::Load(spec, answer->record, client->Artifacts()); auto binding =
//   kernel->Bind(tensors);                        // checks types, shapes, strides, alignment
//   kernel->Launch(*binding, *pool);                             // allocates nothing
//
// Every call has a deadline. UNAVAILABLE is retried with jitter, nothing else is. Errors carry
// reason and details (proto/contract/error.h). Thread-safe unless a class says otherwise; no gRPC
// in sight.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/runtime/kiln_runtime.h"
#include "proto/contract/job.h"
#include "proto/contract/record.h"
#include "proto/contract/workload.h"

namespace kiln::client {

struct ClientOptions {
  std::string server = "127.0.0.1:7600";            // HOST:PORT or unix:PATH
  absl::Duration call_timeout = absl::Seconds(30);  // of one call
  absl::Duration retry_for = absl::Seconds(2);      // how long an unreachable server is tried again
  absl::Duration reconnect_for = absl::Seconds(60);  // the same, for a job that is being waited for
  std::string device;  // what selections without a device ask for; empty: "cpu". A deployment
                       // sets its fingerprint here, once per process
  std::string cache_directory;  // of artifacts, by digest; empty: none
  size_t answers = 1024;        // kept in memory, least recently used out first; 0: none
  absl::Duration answer_lifetime = absl::Minutes(5);
  std::string identity;  // of this client, for fairness and people; empty: USER-independent
                         // "kiln-client/PID"
};

// What is asked for. What is left out of the objective is the device kind's default.
struct Selection {
  WorkloadSpec workload;
  std::string device;
  std::optional<CacheState> cache;
  std::optional<Burst> burst;
};

struct Answer {
  Match match = Match::kNone;
  Record record;
  std::string job;       // that found it
  double lookup_ns = 0;  // spent by the server
  std::vector<std::string> stale_because;
};

struct TuneRequest {
  Selection selection;
  std::optional<int64_t> trials;  // absent: the server's default
  std::optional<double> seconds;
  uint64_t seed = 0;
  std::optional<double> wait_worker_seconds;
  bool force = false;
  int priority = 0;
  absl::Duration wait = absl::InfiniteDuration();  // for the answer; the job goes on without us
};

// One caller's interest in a job, as the server told it last.
struct OperationState {
  std::string name;  // "operations/..."
  Job job;
  bool joined = false;  // the job was there before
  bool done = false;
  absl::Status error;            // once done: why it failed
  std::optional<Answer> answer;  // once done and well
};
using OnProgress = std::function<void(const OperationState&)>;

struct WorkerState {
  std::string name, host, version, toolchain, state, job, timer;
  DeviceFingerprint device;
  int64_t pid = 0, jobs_done = 0;
  double seconds_since_seen = 0;
};

// Gives an artifact's bytes, whose digest the caller checks.
using ArtifactSource = std::function<absl::StatusOr<std::string>(const std::string& digest)>;

class Client {
 public:
  // Connects when first used. INVALID_ARGUMENT: an address of no known form.
  static absl::StatusOr<std::unique_ptr<Client>> Make(const ClientOptions& options);
  ~Client();

  // NOT_FOUND (NOT_TUNED) if nothing is stored that is good enough.
  absl::StatusOr<Answer> GetSchedule(const Selection& selection, Match min_quality = Match::kExact);
  // In the order of the selections; match kNone where nothing is stored. Any number of them.
  absl::StatusOr<std::vector<absl::StatusOr<Answer>>> BatchGetSchedules(
      const std::vector<Selection>& selections, Match min_quality = Match::kExact);

  // Asks for a job and waits for its end. A server that goes away is sought for `reconnect_for`;
  // then UNAVAILABLE. An operation that it no longer knows is asked for anew. A stop: CANCELLED,
  // and the operation stays as it is. DEADLINE_EXCEEDED after `wait`. Each of these names operation
  // and job in its details; the job goes on. A job that fails: its error, with detail failed=job.
  absl::StatusOr<Answer> Tune(const TuneRequest& request, const OnProgress& on_progress = nullptr,
                              std::stop_token stop = {});
  // Only asks: the operation, done at once if the answer is stored.
  absl::StatusOr<OperationState> StartTune(const TuneRequest& request);
  // Waits for the end of an operation, reconnecting as Tune does.
  absl::StatusOr<OperationState> Watch(const std::string& operation,
                                       const OnProgress& on_progress = nullptr,
                                       std::stop_token stop = {},
                                       absl::Duration wait = absl::InfiniteDuration());
  // Withdraws this interest; a job that nobody wants stops.
  absl::Status Cancel(const std::string& operation);

  absl::StatusOr<std::vector<Record>> ListRecords(const std::string& signature = "",
                                                  const std::string& device = "");
  absl::StatusOr<Record> GetRecord(const std::string& id);
  absl::StatusOr<std::vector<Job>> ListJobs();
  absl::StatusOr<Job> GetJob(const std::string& job_or_operation);
  absl::StatusOr<std::vector<WorkerState>> ListWorkers();

  // Whole and checked against the digest; from the local cache if there. NOT_FOUND; DATA_LOSS if
  // what comes is not it.
  absl::StatusOr<std::string> FetchArtifact(const std::string& digest);
  // FetchArtifact of this client, which must outlive it.
  ArtifactSource Artifacts();

 private:
  struct Wire;
  explicit Client(std::unique_ptr<Wire> wire);
  std::unique_ptr<Wire> wire_;
};

// The threads that kernels run on.
class ThreadPool {
 public:
  // 0: all that this process may use. `pin`: one per core, the calling thread included.
  static absl::StatusOr<std::unique_ptr<ThreadPool>> Make(int threads, bool pin = false);
  ~ThreadPool();
  int threads() const { return kiln_pool_threads(pool_); }
  kiln_pool* get() const { return pool_; }

 private:
  explicit ThreadPool(kiln_pool* pool) : pool_(pool) {}
  kiln_pool* pool_;
};

// A caller's tensor. Strides in elements; empty: packed row-major.
struct TensorView {
  void* data = nullptr;
  DType type = DType::kF32;
  std::vector<int64_t> shape;
  std::vector<int64_t> strides;
};

// A plan in memory, bound to a workload. One launch at a time per Binding.
class LoadedKernel {
 public:
  // Checked pointers and the workspace of their launches.
  class Binding {
   public:
    ~Binding();
    Binding(const Binding&) = delete;
    Binding& operator=(const Binding&) = delete;

   private:
    friend class LoadedKernel;
    Binding() = default;
    std::vector<void*> pointers_;  // in the plan's order
    void* workspace_ = nullptr;    // null if the plan needs none
  };

  // Checks that the record is of this workload, and every digest. FAILED_PRECONDITION: of another
  // workload, or a plan for another machine; DATA_LOSS: an artifact is not what its digest says;
  // errors of `artifacts`.
  static absl::StatusOr<std::unique_ptr<LoadedKernel>> Load(const WorkloadSpec& workload,
                                                            const Record& record,
                                                            const ArtifactSource& artifacts);
  ~LoadedKernel();

  // Checks the tensors (inputs and constants, then outputs, in the program's order) against the
  // workload: number, types, shapes, strides, alignment, and that outputs overlap nothing but what
  // they alias. INVALID_ARGUMENT names the tensor. Takes workspace.
  absl::StatusOr<std::unique_ptr<Binding>> Bind(const std::vector<TensorView>& tensors) const;

  // Packs the constants; once before the first launch (Launch does it if need be), and again when
  // they change.
  absl::Status Prepack(const Binding& binding, const ThreadPool& pool);
  // Runs it once. Allocates nothing.
  absl::Status Launch(const Binding& binding, const ThreadPool& pool);

  const Workload& workload() const { return workload_; }
  int64_t workspace_bytes() const { return kiln_plan_workspace_bytes(plan_); }

 private:
  LoadedKernel(Workload workload, kiln_plan* plan) : workload_(std::move(workload)), plan_(plan) {}

  Workload workload_;
  kiln_plan* plan_;
  std::atomic<bool> prepacked_{false};
};

}  // namespace kiln::client
