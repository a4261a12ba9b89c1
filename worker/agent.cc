// SPDX-License-Identifier: Apache-2.0
// Two threads while a job is at work: this one runs it, the courier's sends heartbeats and
// outcomes. Neither waits for the other: a job never hangs on a server that is away, and a long
// compile never costs the lease.
#include "worker/agent.h"

#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "proto/contract/error.h"
#include "proto/wire.h"
#include "worker/compiler/deep_stack.h"
#include "worker/connection.h"
#include "worker/log.h"

namespace kiln::worker {
namespace {

constexpr size_t kOutcomesPerCall = 100;
// Gone so long at the end of a drain, the server will have to find out by itself.
constexpr absl::Duration kFarewell = absl::Seconds(10);

std::string MakeName() {
  char host[128] = {};
  if (gethostname(host, sizeof host - 1) != 0 || host[0] == 0)
    snprintf(host, sizeof host, "unknown");
  std::random_device random;
  return absl::StrFormat("workers/%s-%d-%08x", host, getpid(), random());
}

absl::StatusOr<JobLease> LeaseOf(const v1::Lease& message) {
  JobLease lease;
  lease.job = message.job();
  lease.epoch = message.epoch();
  lease.signature = message.signature();
  lease.first_sequence = message.first_sequence();
  KILN_ASSIGN_OR_RETURN(lease.spec, wire::FromWire(message.spec()));
  KILN_ASSIGN_OR_RETURN(lease.device, wire::FromWire(message.device()));
  KILN_ASSIGN_OR_RETURN(lease.objective, wire::FromWire(message.objective(),
                                                        wire::DefaultObjective(lease.device.kind)));
  KILN_ASSIGN_OR_RETURN(lease.budget, wire::FromWire(message.budget(), Budget{}));
  if (message.has_incumbent()) {
    KILN_ASSIGN_OR_RETURN(lease.incumbent, wire::FromWire(message.incumbent()));
  }
  for (const v1::Outcome& known : message.known()) {
    KILN_ASSIGN_OR_RETURN(Outcome outcome, wire::FromWire(known));
    lease.known.push_back(std::move(outcome));
  }
  for (const v1::Blocked& blocked : message.blocklist()) {
    KILN_ASSIGN_OR_RETURN(Schedule schedule, wire::FromWire(blocked.schedule()));
    KILN_ASSIGN_OR_RETURN(const Stage stage, wire::FromWire(blocked.stage()));
    lease.blocklist.push_back({std::move(schedule), stage, blocked.toolchain()});
  }
  return lease;
}

}  // namespace

// A lease at work: what RunJob tells, and the courier that carries it.
class Agent::LeaseRun : public JobReporter {
 public:
  LeaseRun(Connection* connection, JobLease lease)
      : connection_(connection),
        lease_(std::move(lease)),
        budget_(lease_.budget),
        courier_([this] { Carry(); }) {}
  ~LeaseRun() override {
    {
      std::lock_guard lock(mutex_);
      done_ = true;
    }
    changed_.notify_all();
    courier_.join();
  }

  const JobLease& lease() const { return lease_; }
  HeldLease held() const { return {lease_.job, lease_.epoch}; }
  const CancelToken& cancel() const { return cancel_; }
  // Nothing that is said about this job counts any more.
  bool lost() const {
    std::lock_guard lock(mutex_);
    return lost_;
  }
  void Cancel() { cancel_.Cancel(); }

  void Report(const Outcome& outcome) override {
    std::lock_guard lock(mutex_);
    outcomes_.push_back(outcome);
    changed_.notify_all();
  }
  void Update(const Progress& progress) override {
    std::lock_guard lock(mutex_);
    progress_ = progress;
  }
  Budget CurrentBudget() override {
    std::lock_guard lock(mutex_);
    return budget_;
  }
  absl::StatusOr<std::string> FetchArtifact(const std::string& digest) override {
    return connection_->ReadArtifact(digest);
  }

  // Until the courier has delivered every outcome, or it is pointless.
  void Flush() {
    std::unique_lock lock(mutex_);
    const absl::Time give_up = absl::Now() + kFarewell;
    changed_.notify_all();
    while (!outcomes_.empty() && !lost_ && !(connection_->stopped() && absl::Now() > give_up)) {
      changed_.wait_for(lock, std::chrono::milliseconds(100));
    }
  }

 private:
  void Carry();
  absl::Status SendOutcomes();
  absl::Status Beat();

  Connection* connection_;
  const JobLease lease_;
  CancelToken cancel_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool done_ = false, lost_ = false;
  Budget budget_;
  Progress progress_;
  std::deque<Outcome> outcomes_;  // not delivered yet
  std::thread courier_;           // last: it uses all of the above
};

absl::Status Agent::LeaseRun::SendOutcomes() {
  v1::ReportOutcomesRequest request;
  request.set_worker(connection_->name());
  request.set_job(lease_.job);
  request.set_lease_epoch(lease_.epoch);
  {
    std::lock_guard lock(mutex_);
    for (size_t i = 0; i < std::min(outcomes_.size(), kOutcomesPerCall); ++i)
      wire::ToWire(outcomes_[i], request.add_outcomes());
  }
  if (request.outcomes().empty()) return absl::OkStatus();
  absl::Status status = connection_->ReportOutcomes(request);
  if (!status.ok() && !IsAway(status) && !IsUnknownWorker(status)) {
    Log(absl::StrCat(lease_.job, ": the server refuses outcomes: ", status.message()));
    status = absl::OkStatus();  // again would be refused again
  }
  if (status.ok()) {
    std::lock_guard lock(mutex_);
    outcomes_.erase(outcomes_.begin(), outcomes_.begin() + request.outcomes_size());
    changed_.notify_all();
  }
  return status;
}

absl::Status Agent::LeaseRun::Beat() {
  v1::HeartbeatRequest request;
  request.set_worker(connection_->name());
  request.set_job(lease_.job);
  request.set_lease_epoch(lease_.epoch);
  {
    std::lock_guard lock(mutex_);
    wire::ToWire(progress_, request.mutable_progress());
  }
  KILN_ASSIGN_OR_RETURN(const v1::HeartbeatResponse response, connection_->Heartbeat(request));
  if (response.cancel()) cancel_.Cancel();
  if (response.has_budget()) {
    KILN_ASSIGN_OR_RETURN(const Budget raised, wire::FromWire(response.budget(), lease_.budget));
    std::lock_guard lock(mutex_);
    budget_ = raised;
  }
  if (response.drain()) connection_->Stop();
  return absl::OkStatus();
}

void Agent::LeaseRun::Carry() {
  absl::Time next_beat = absl::Now();
  bool away = false;
  while (true) {
    absl::Status status = SendOutcomes();
    // Outcomes may wait for room on the server's disk; the lease is kept all the same.
    if ((status.ok() || IsAway(status)) && absl::Now() >= next_beat) {
      if (const absl::Status beat = Beat(); !beat.ok()) status = beat;
      next_beat = absl::Now() + connection_->heartbeat();
    }
    if (IsUnknownWorker(status)) {
      // The server was restarted: it takes us back, with the lease if nobody has it.
      const absl::StatusOr<bool> kept = connection_->Register(held());
      status = kept.ok()
                   ? *kept ? absl::OkStatus() : absl::AbortedError("it was given to another worker")
                   : kept.status();
    }
    if (IsAway(status) && !away)
      Log(absl::StrCat("the server is away, ", lease_.job, " goes on: ", status.message()));
    away = IsAway(status);
    std::unique_lock lock(mutex_);
    if (absl::IsAborted(status) && !lost_) {
      lost_ = true;
      cancel_.Cancel();
      Log(absl::StrCat(lease_.job, ": the lease is lost: ", status.message()));
    }
    if (done_) return;
    const absl::Duration wait = away ? absl::Milliseconds(500) : next_beat - absl::Now();
    changed_.wait_for(lock, absl::ToChronoNanoseconds(std::max(wait, absl::ZeroDuration())),
                      [&] { return done_ || (!away && !outcomes_.empty() && !lost_); });
  }
}

Agent::Agent(AgentOptions options, JobTools tools) : tools_(std::move(tools)) {
  tools_.worker = MakeName();
  connection_ = std::make_unique<Connection>(std::move(options), tools_, tools_.worker);
}

Agent::~Agent() = default;

void Agent::Drain() { connection_->Stop(); }

absl::Status Agent::Run(const std::function<void()>& ready) {
  bool announced = false, registered = false;
  const auto stop = [this] { return connection_->stopped(); };
  while (!connection_->stopped()) {
    if (!registered) {
      const absl::Status status = connection_->Persist(
          {}, [this] { return connection_->Register({}).status(); }, stop);
      if (connection_->stopped()) break;
      if (!status.ok()) return Annotate(status, "registering with the server");
      registered = true;
      if (!std::exchange(announced, true)) ready();
    }
    absl::StatusOr<v1::LeaseJobResponse> response = connection_->Lease();
    if (!response.ok()) {
      // Whatever it is, the answer is to say who we are and to ask again, not at once.
      registered = false;
      if (!IsUnknownWorker(response.status())) connection_->Pause(absl::Milliseconds(300));
      continue;
    }
    if (response->drain()) break;
    if (!response->has_lease()) continue;
    absl::StatusOr<JobLease> lease = LeaseOf(response->lease());
    if (!lease.ok()) {
      v1::CompleteJobRequest request;
      request.set_worker(connection_->name());
      request.set_job(response->lease().job());
      request.set_lease_epoch(response->lease().epoch());
      request.mutable_failure()->set_code(static_cast<int>(lease.status().code()));
      request.mutable_failure()->set_reason("BAD_LEASE");
      request.mutable_failure()->set_message(std::string(lease.status().message()));
      connection_->Complete(request).status().IgnoreError();  // the lease runs out if this is lost
      continue;
    }
    LeaseRun run(connection_.get(), *std::move(lease));
    RunLease(&run);
  }
  return absl::OkStatus();
}

void Agent::RunLease(LeaseRun* run) {
  const std::string job = run->lease().job;
  Log(absl::StrCat("begins ", job));
  // A drain interrupts the job like a cancel, but the job goes to another worker.
  std::atomic<bool> ended{false};
  std::thread drain([&] {
    while (!ended && !connection_->stopped()) connection_->Pause(absl::Milliseconds(100));
    if (!ended) run->Cancel();
  });
  JobEnd end;
  compiler::OnDeepStack([&] { end = RunJob(run->lease(), tools_, run, run->cancel()); });
  ended = true;
  drain.join();
  Progress publishing = end.progress;
  publishing.phase = "publishing";
  run->Update(publishing);
  run->Flush();
  if (run->lost()) return Log(absl::StrCat("drops ", job));

  const auto stop = [this, run, give_up = absl::Now() + kFarewell] {
    return run->lost() || (connection_->stopped() && absl::Now() > give_up);
  };
  absl::Status status;
  if (end.kind == JobEnd::kCancelled && connection_->stopped()) {
    v1::ReleaseJobRequest request;
    request.set_worker(connection_->name());
    request.set_job(job);
    request.set_lease_epoch(run->lease().epoch);
    request.set_reason("the worker drains");
    status = connection_->Persist(
        run->held(), [&] { return connection_->Release(request); }, stop);
    return Log(absl::StrCat("hands back ", job, status.ok() ? "" : ": ", status.message()));
  }
  v1::CompleteJobRequest request;
  request.set_worker(connection_->name());
  request.set_job(job);
  request.set_lease_epoch(run->lease().epoch);
  wire::ToWire(end.progress, request.mutable_progress());
  if (end.kind == JobEnd::kRecord) {
    for (const Artifact& artifact : end.artifacts) {
      if (!status.ok()) break;
      status = connection_->Persist(
          run->held(), [&] { return connection_->WriteArtifact(artifact); }, stop);
    }
    if (!status.ok() && !absl::IsAborted(status)) {
      end.error = Annotate(status, "storing the artifacts");
      end.kind = JobEnd::kFailed;
    }
    wire::ToWire(end.record, request.mutable_record());
  }
  if (end.kind == JobEnd::kKeep) request.set_keep(wire::RecordName(end.record.id));
  if (end.kind == JobEnd::kFailed || end.kind == JobEnd::kCancelled) {
    request.mutable_failure()->set_code(static_cast<int>(end.error.code()));
    request.mutable_failure()->set_reason(GetErrorInfo(end.error).reason);
    request.mutable_failure()->set_message(std::string(end.error.message()));
  }
  status = connection_->Persist(
      run->held(), [&] { return connection_->Complete(request).status(); }, stop);
  const char* const kWords[] = {"record", "the incumbent stands", "failed", "cancelled"};
  Log(absl::StrCat("ends ", job, ": ", kWords[end.kind], end.error.ok() ? "" : ": ",
                   end.error.message(),
                   status.ok() ? "" : "; the server says: ", status.message()));
}

}  // namespace kiln::worker
