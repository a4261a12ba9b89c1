// SPDX-License-Identifier: Apache-2.0
#include "server/dispatcher.h"

#include <set>
#include <utility>
#include <vector>

namespace kiln::server {
namespace {

using Lock = std::lock_guard<std::mutex>;

constexpr absl::Duration kLongestPoll = absl::Seconds(60);
constexpr absl::Duration kCheckpointEvery = absl::Seconds(10);

}  // namespace

Dispatcher::Dispatcher(JobTable* jobs, Roster* roster, const Clock* clock, Counters* counters)
    : jobs_(jobs),
      roster_(roster),
      clock_(clock),
      counters_(counters),
      started_(clock->Now()),
      last_checkpoint_(started_) {}

int64_t Dispatcher::Poll(const std::string& worker, absl::Duration wait, Answer answer) {
  const absl::Status known = roster_->Touch(worker);
  const absl::StatusOr<Worker> self = roster_->Find(worker);
  if (!known.ok() || !self.ok()) {
    answer(known.ok() ? self.status() : known);
    return 0;
  }
  roster_->SetDraining(worker, false);  // it asks for work
  // The answer that brought the lease was lost, or the worker forgot: the same lease once more.
  if (std::optional<JobTable::Leased> held = jobs_->LeaseOf(worker)) {
    answer(std::move(held));
    return 0;
  }
  absl::Status drained;
  int64_t id = 0;
  {
    Lock lock(mutex_);
    drained = drained_;
    if (drained.ok()) {
      Parked& parked = parked_[worker];
      id = ++last_poll_;
      parked.id = id;
      parked.device = self->device_id;
      parked.until = clock_->Now() + std::min(wait, kLongestPoll);
      parked.answer.swap(answer);  // what waited before is replaced, and answered below
    }
  }
  if (!drained.ok()) {
    answer(drained);
    return 0;
  }
  if (answer) answer(std::optional<JobTable::Leased>());
  Serve();
  if (wait > absl::ZeroDuration()) return id;
  if (std::optional<Parked> parked = Unpark(worker, id))
    parked->answer(std::optional<JobTable::Leased>());
  return id;
}

std::optional<Dispatcher::Parked> Dispatcher::Unpark(const std::string& worker, int64_t id) {
  Lock lock(mutex_);
  const auto it = parked_.find(worker);
  if (it == parked_.end() || (id != 0 && it->second.id != id)) return std::nullopt;
  Parked parked = std::move(it->second);
  parked_.erase(it);
  return parked;
}

void Dispatcher::Forget(const std::string& worker, int64_t poll) { Unpark(worker, poll); }

void Dispatcher::JobQueued() { Serve(); }

int Dispatcher::Serve() {
  {
    Lock lock(mutex_);
    if (parked_.empty()) return 0;
  }
  const std::set<std::string> wanted = jobs_->QueuedDevices();
  std::vector<std::pair<std::string, int64_t>> workers;
  {
    Lock lock(mutex_);
    for (const auto& [worker, parked] : parked_) {
      if (wanted.count(parked.device)) workers.emplace_back(worker, parked.id);
    }
  }
  int given = 0;
  for (const auto& [worker, id] : workers) {
    // Taken out while it is served, so that no two threads serve one worker.
    std::optional<Parked> parked = Unpark(worker, id);
    if (!parked) continue;
    if (Give(worker, parked->device, parked->answer)) {
      ++given;
      continue;
    }
    // Back, unless the worker asked again meanwhile or the server drains.
    Answer late;
    absl::Status drained;
    {
      Lock lock(mutex_);
      drained = drained_;
      if (!drained.ok() || parked_.count(worker)) {
        late = std::move(parked->answer);
      } else {
        parked_[worker] = *std::move(parked);
      }
    }
    if (!late) continue;
    if (drained.ok()) {
      late(std::optional<JobTable::Leased>());
    } else {
      late(drained);
    }
  }
  return given;
}

// Whether the worker was answered.
bool Dispatcher::Give(const std::string& worker, const std::string& device, const Answer& answer) {
  absl::StatusOr<std::optional<JobTable::Leased>> leased = jobs_->LeaseNext(device, worker);
  if (!leased.ok()) {
    Add(counters_->store_failures);
    answer(leased.status());
    return true;
  }
  if (!leased->has_value()) return false;
  const std::string job = (*leased)->job.name;
  const int64_t epoch = (*leased)->job.lease_epoch;
  if (!answer(std::move(leased))) {
    // Nobody was there to take it: back at once, and no attempt. If that fails, the lease expires.
    if (!jobs_->ReleaseLease(job, worker, epoch).ok()) Add(counters_->store_failures);
  }
  return true;
}

void Dispatcher::Sweep() {
  std::unique_lock<std::mutex> alone(sweep_mutex_, std::try_to_lock);
  if (!alone) return;  // the last one is still at it
  const absl::Time now = clock_->Now();
  std::vector<Answer> over;
  std::set<std::string> present;
  {
    Lock lock(mutex_);
    for (auto it = parked_.begin(); it != parked_.end();) {
      if (it->second.until > now) {
        present.insert(it->first);
        ++it;
        continue;
      }
      over.push_back(std::move(it->second.answer));
      it = parked_.erase(it);
    }
  }
  for (const Answer& answer : over) answer(std::optional<JobTable::Leased>());
  roster_->Sweep(present);

  for (const JobTable::Expired& lease : jobs_->ExpiredLeases()) {
    const absl::Status lost = jobs_->LoseLease(lease.job, lease.worker, lease.epoch, lease.why);
    if (!lost.ok() && lost.code() != absl::StatusCode::kAborted) Add(counters_->store_failures);
  }
  jobs_->StopUnwanted();
  jobs_->FailUnserved([&](const std::string& device) { return roster_->LastPresent(device); },
                      started_);
  Add(counters_->swept_leases, Serve());
  if (now - last_checkpoint_ >= kCheckpointEvery) {
    last_checkpoint_ = now;
    jobs_->Checkpoint();
  }
}

void Dispatcher::Drain(const absl::Status& status) {
  std::map<std::string, Parked> parked;
  {
    Lock lock(mutex_);
    drained_ = status;
    parked.swap(parked_);
  }
  for (auto& [worker, poll] : parked) poll.answer(status);
}

}  // namespace kiln::server
