// SPDX-License-Identifier: Apache-2.0
// From what is asked to what is stored: workload and device -> key -> the published record and how
// well it matches. Never starts work. Thread-safe; all calls take microseconds (a cached answer, or
// one prepared point read), but for Check of a text that was not seen lately, which is linear in
// it.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "db/store.h"
#include "proto/contract/workload.h"
#include "server/clock.h"
#include "server/counters.h"
#include "server/lru.h"
#include "server/roster.h"

namespace kiln::server {

// A selection, understood.
struct Question {
  std::shared_ptr<const Workload> workload;
  DeviceFingerprint device;
  Key key;
};

struct Answer {
  Match match = Match::kNone;            // exact, stale or none
  std::shared_ptr<const Record> record;  // null: none
  std::vector<std::string> stale_because;
};

// What an answer held true of; whoever keeps one asks IsCurrent before it is used again.
struct Freshness {
  size_t slot = 0;
  int64_t version = 0;
  int64_t generation = 0;
};

class Lookup {
 public:
  Lookup(db::Store* store, const Roster* roster, const Clock* clock, absl::Duration grace,
         size_t cache_bytes, Counters* counters);
  // Reads salt and devices; before anything else.
  absl::Status Start();

  // CheckWorkload, remembered by `identity`: the spec's serialised form.
  absl::StatusOr<std::shared_ptr<const Workload>> Check(const WorkloadSpec& spec,
                                                        absl::string_view identity);
  // As ResolveDevice; NO_WORKER_FOR_DEVICE is UNAVAILABLE while the server is younger than the
  // grace, since workers may be on their way back.
  struct Known {
    DeviceFingerprint device;
    std::string id;
  };
  absl::StatusOr<std::shared_ptr<const Known>> Resolve(absl::string_view device);
  Key KeyOf(const Workload& workload, const std::string& device_id,
            const Objective& objective) const;

  // The published record of the key.
  absl::StatusOr<Answer> Find(const Question& question);
  // The exact answer that the store keeps for the very question (selection.h) about a device. None:
  // ask the longer way, which finds whatever there is.
  struct Kept {
    db::StoredAnswer answer;
    Freshness fresh;
  };
  std::optional<Kept> FindKept(absl::string_view question, const std::string& device_id);
  // Whether an answer about a device that was read when so much was published is exact still.
  int64_t publications() const { return publications_.load(std::memory_order_acquire); }
  std::optional<Freshness> StillExact(const db::StoredAnswer& answer, int64_t publications,
                                      const std::string& device_id) const;

  Freshness FreshnessOf(const Key& key) const {  // take it before Find
    return FreshnessOf(key.signature, key.device);
  }
  bool IsCurrent(const Freshness& freshness) const;
  // What answers the key changed, durably.
  void Published(const Key& key);
  // A worker brought a device.
  absl::Status RememberDevice(const DeviceFingerprint& device);

  int64_t salt() const { return salt_; }

 private:
  struct CachedRecord {
    std::shared_ptr<const Record> record;  // null: the key answers nothing
    int64_t version = 0;
  };
  struct ResolvedDevice {
    int64_t generation = 0;
    std::shared_ptr<const Known> known;
  };
  static constexpr size_t kSlots = 4096;
  Freshness FreshnessOf(absl::string_view signature, absl::string_view device) const;

  db::Store* const store_;
  const Roster* const roster_;
  const Clock* const clock_;
  const absl::Time grace_ends_;
  Counters* const counters_;
  int64_t salt_ = 0;

  Lru<std::shared_ptr<const Workload>> workloads_;
  Lru<CachedRecord> records_;
  // Publications are counted, and each slot of keys has the number of its newest one for a version:
  // what was read under another one is not current any more, nor what was read when fewer were
  // counted. Keys that share a slot are asked for once more than needed.
  std::array<std::atomic<int64_t>, kSlots> versions_{};
  std::atomic<int64_t> publications_{0};  // counted before the slot has the number

  mutable std::mutex devices_mutex_;
  std::vector<DeviceFingerprint> remembered_;
  absl::flat_hash_map<std::string, ResolvedDevice> resolved_;
};

}  // namespace kiln::server
