// SPDX-License-Identifier: Apache-2.0
// The workers: who they are, what they run on, when they were last heard of. In memory; after a
// restart they register again. Thread-safe. `generation` grows whenever what the roster says of
// devices or toolchains changes: answers that depend on it are computed anew then.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "proto/contract/device.h"
#include "server/clock.h"

namespace kiln::server {

struct Worker {
  std::string name;  // "workers/..."
  std::string host;
  int64_t pid = 0;
  DeviceFingerprint device;
  std::string device_id;
  std::string version, toolchain, timer, emitter;
  int method_version = 0;
  std::vector<std::string> families;
  absl::Time seen;
  bool draining = false;
  bool lost = false;
  int64_t jobs_done = 0;
};

class Roster {
 public:
  Roster(const Clock* clock, absl::Duration expiry) : clock_(clock), expiry_(expiry) {}

  // RESOURCE_EXHAUSTED (WORKER_NAME_TAKEN) if another process of that name was heard of within the
  // expiry.
  absl::Status Register(Worker worker);
  // A sign of life. NOT_FOUND (WORKER_UNKNOWN): it has to register.
  absl::Status Touch(const std::string& name);
  absl::StatusOr<Worker> Find(const std::string& name) const;  // NOT_FOUND (WORKER_UNKNOWN)
  void CountDone(const std::string& name);
  void SetDraining(const std::string& name, bool draining);

  // Marks those that were not heard of for the expiry as lost, and forgets them after an hour. Ones
  // in `parked` have a call open.
  void Sweep(const std::set<std::string>& parked);

  std::vector<Worker> List() const;  // by name, lost ones too
  // Those of the device that are there. Shared until something of the roster changes; `seen` may be
  // older than it is.
  using Workers = std::shared_ptr<const std::vector<Worker>>;
  Workers Present(const std::string& device_id) const;
  std::vector<DeviceFingerprint> PresentDevices() const;  // each once
  // When a worker of the device was last there: now, if one is; the distant past, if none was.
  absl::Time LastPresent(const std::string& device_id) const;

  int64_t generation() const { return generation_.load(std::memory_order_acquire); }

 private:
  const Clock* const clock_;
  const absl::Duration expiry_;
  mutable std::mutex mutex_;
  std::map<std::string, Worker> workers_;
  std::map<std::string, absl::Time> last_present_;  // by device
  mutable std::map<std::string, Workers> present_;  // by device, as far as they were asked for
  void Changed();                                   // under the lock
  std::atomic<int64_t> generation_{1};
};

}  // namespace kiln::server
