// SPDX-License-Identifier: Apache-2.0
#include "server/roster.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "proto/contract/error.h"

namespace kiln::server {
namespace {

using Lock = std::lock_guard<std::mutex>;

constexpr absl::Duration kRemembered = absl::Hours(1);  // lost workers stay listed this long

absl::Status Unknown(const std::string& name) {
  return MakeError(absl::StatusCode::kNotFound,
                   absl::StrCat("worker ", name, " is not registered; register first"),
                   {"WORKER_UNKNOWN", {{"worker", name}}});
}

}  // namespace

void Roster::Changed() {
  present_.clear();
  generation_.fetch_add(1, std::memory_order_release);
}

absl::Status Roster::Register(Worker worker) {
  worker.device_id = DeviceId(worker.device);
  worker.seen = clock_->Now();
  Lock lock(mutex_);
  const auto it = workers_.find(worker.name);
  if (it != workers_.end()) {
    const Worker& old = it->second;
    const bool same = old.host == worker.host && old.pid == worker.pid;
    if (!same && !old.lost && worker.seen - old.seen <= expiry_) {
      return MakeError(
          absl::StatusCode::kResourceExhausted,
          absl::StrCat("the name ", worker.name, " is that of process ", old.pid, " on ", old.host),
          {"WORKER_NAME_TAKEN",
           {{"worker", worker.name}, {"host", old.host}, {"pid", absl::StrCat(old.pid)}}});
    }
    worker.jobs_done = old.jobs_done;
  }
  last_present_[worker.device_id] = worker.seen;
  workers_[worker.name] = std::move(worker);
  Changed();
  return absl::OkStatus();
}

absl::Status Roster::Touch(const std::string& name) {
  Lock lock(mutex_);
  const auto it = workers_.find(name);
  if (it == workers_.end()) return Unknown(name);
  it->second.seen = clock_->Now();
  last_present_[it->second.device_id] = it->second.seen;
  if (it->second.lost) {
    it->second.lost = false;
    Changed();
  }
  return absl::OkStatus();
}

absl::StatusOr<Worker> Roster::Find(const std::string& name) const {
  Lock lock(mutex_);
  const auto it = workers_.find(name);
  if (it == workers_.end()) return Unknown(name);
  return it->second;
}

void Roster::CountDone(const std::string& name) {
  Lock lock(mutex_);
  if (const auto it = workers_.find(name); it != workers_.end()) ++it->second.jobs_done;
}

void Roster::SetDraining(const std::string& name, bool draining) {
  Lock lock(mutex_);
  if (const auto it = workers_.find(name); it != workers_.end()) it->second.draining = draining;
}

void Roster::Sweep(const std::set<std::string>& parked) {
  const absl::Time now = clock_->Now();
  Lock lock(mutex_);
  for (auto it = workers_.begin(); it != workers_.end();) {
    Worker& worker = it->second;
    if (!worker.lost && parked.count(worker.name)) last_present_[worker.device_id] = now;
    if (!worker.lost && now - worker.seen > expiry_ && !parked.count(worker.name)) {
      worker.lost = true;
      Changed();
    }
    it = worker.lost && now - worker.seen > kRemembered ? workers_.erase(it) : std::next(it);
  }
}

std::vector<Worker> Roster::List() const {
  Lock lock(mutex_);
  std::vector<Worker> workers;
  for (const auto& [name, worker] : workers_) workers.push_back(worker);
  return workers;
}

Roster::Workers Roster::Present(const std::string& device_id) const {
  Lock lock(mutex_);
  Workers& present = present_[device_id];
  if (present == nullptr) {
    std::vector<Worker> workers;
    for (const auto& [name, worker] : workers_) {
      if (!worker.lost && worker.device_id == device_id) workers.push_back(worker);
    }
    present = std::make_shared<const std::vector<Worker>>(std::move(workers));
  }
  return present;
}

std::vector<DeviceFingerprint> Roster::PresentDevices() const {
  Lock lock(mutex_);
  std::map<std::string, DeviceFingerprint> devices;
  for (const auto& [name, worker] : workers_) {
    if (!worker.lost) devices.emplace(worker.device_id, worker.device);
  }
  std::vector<DeviceFingerprint> list;
  for (auto& [id, device] : devices) list.push_back(std::move(device));
  return list;
}

absl::Time Roster::LastPresent(const std::string& device_id) const {
  Lock lock(mutex_);
  for (const auto& [name, worker] : workers_) {
    if (!worker.lost && worker.device_id == device_id) return clock_->Now();
  }
  const auto it = last_present_.find(device_id);
  return it == last_present_.end() ? absl::InfinitePast() : it->second;
}

}  // namespace kiln::server
