// SPDX-License-Identifier: Apache-2.0
#include "server/lookup.h"

#include <utility>

#include "absl/hash/hash.h"
#include "absl/strings/str_cat.h"
#include "proto/contract/error.h"
#include "server/devices.h"
#include "server/staleness.h"

namespace kiln::server {
namespace {

constexpr size_t kMaxResolved = 1024;  // names of devices, kept resolved

// Roughly what they take in memory.
size_t CostOf(const Workload& workload) {
  return 2 * workload.spec.program.size() + workload.canonical.size() +
         workload.graph.nodes.size() * 256 + workload.graph.tensors.size() * 256 + 1024;
}
size_t CostOf(const Record& record) {
  return record.spec.program.size() + record.canonical.size() + record.plan.steps.size() * 2048 +
         record.measurement.samples_ns.size() * 8 + 4096;
}

}  // namespace

Lookup::Lookup(db::Store* store, const Roster* roster, const Clock* clock, absl::Duration grace,
               size_t cache_bytes, Counters* counters)
    : store_(store),
      roster_(roster),
      clock_(clock),
      grace_ends_(clock->Now() + grace),
      counters_(counters),
      workloads_(cache_bytes / 2),
      records_(cache_bytes / 2) {}

absl::Status Lookup::Start() {
  KILN_ASSIGN_OR_RETURN(salt_, store_->Salt());
  KILN_ASSIGN_OR_RETURN(remembered_, store_->ListDevices());
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<const Workload>> Lookup::Check(const WorkloadSpec& spec,
                                                              absl::string_view identity) {
  if (auto known = workloads_.Find(identity)) return *std::move(known);
  KILN_ASSIGN_OR_RETURN(Workload checked, CheckWorkload(spec));
  auto workload = std::make_shared<const Workload>(std::move(checked));
  workloads_.Insert(identity, workload, CostOf(*workload));
  return workload;
}

absl::StatusOr<std::shared_ptr<const Lookup::Known>> Lookup::Resolve(absl::string_view device) {
  const int64_t generation = roster_->generation();
  std::vector<DeviceFingerprint> remembered;
  {
    std::lock_guard<std::mutex> lock(devices_mutex_);
    if (const auto it = resolved_.find(device);
        it != resolved_.end() && it->second.generation == generation) {
      return it->second.known;
    }
    remembered = remembered_;
  }
  absl::StatusOr<DeviceFingerprint> resolved =
      ResolveDevice(device, roster_->PresentDevices(), remembered);
  if (!resolved.ok()) {
    const ErrorInfo info = GetErrorInfo(resolved.status());
    if (info.reason != "NO_WORKER_FOR_DEVICE" || clock_->Now() >= grace_ends_) {
      return resolved.status();
    }
    return MakeError(absl::StatusCode::kUnavailable,
                     absl::StrCat(resolved.status().message(), "; the server has just started"),
                     info);
  }
  auto known = std::make_shared<const Known>(Known{*resolved, DeviceId(*resolved)});
  std::lock_guard<std::mutex> lock(devices_mutex_);
  if (resolved_.size() >= kMaxResolved) resolved_.clear();
  resolved_[device] = {generation, known};
  return known;
}

Key Lookup::KeyOf(const Workload& workload, const std::string& device_id,
                  const Objective& objective) const {
  return {workload.signature, device_id, objective, salt_};
}

absl::StatusOr<Answer> Lookup::Find(const Question& question) {
  const std::string key = Print(question.key);
  const Freshness fresh = FreshnessOf(question.key);
  std::optional<CachedRecord> cached = records_.Find(key);
  // The text is compared on every hit: a signature alone is not believed.
  const bool usable =
      cached && cached->version == fresh.version &&
      (cached->record == nullptr || cached->record->canonical == question.workload->canonical);
  if (usable) {
    Add(counters_->lookups_from_memory);
  } else {
    KILN_ASSIGN_OR_RETURN(std::optional<Record> found,
                          store_->FindPublished(question.key, question.workload->canonical));
    cached = CachedRecord{nullptr, fresh.version};
    if (found) cached->record = std::make_shared<const Record>(*std::move(found));
    records_.Insert(key, *cached, cached->record == nullptr ? 0 : CostOf(*cached->record));
  }
  Answer answer;
  if (cached->record == nullptr) return answer;
  answer.record = std::move(cached->record);
  answer.stale_because = StaleBecause(*answer.record, *roster_->Present(question.key.device));
  answer.match = answer.stale_because.empty() ? Match::kExact : Match::kStale;
  return answer;
}

std::optional<Lookup::Kept> Lookup::FindKept(absl::string_view question,
                                             const std::string& device_id) {
  const int64_t publications = this->publications();
  absl::StatusOr<std::optional<db::StoredAnswer>> found = store_->FindAnswer(question);
  if (!found.ok() || !found->has_value()) return std::nullopt;
  const std::optional<Freshness> fresh = StillExact(**found, publications, device_id);
  if (!fresh) return std::nullopt;
  return Kept{**std::move(found), *fresh};
}

std::optional<Freshness> Lookup::StillExact(const db::StoredAnswer& answer, int64_t publications,
                                            const std::string& device_id) const {
  // Before the workers are looked at, lest a change between the two be missed.
  const Freshness fresh = FreshnessOf(answer.signature, device_id);
  if (fresh.version > publications) return std::nullopt;
  const std::vector<std::string> stale = StaleBecause(
      answer.toolchain, answer.emitter, answer.method_version, *roster_->Present(device_id));
  if (!stale.empty()) return std::nullopt;
  return fresh;
}

Freshness Lookup::FreshnessOf(absl::string_view signature, absl::string_view device) const {
  const size_t slot = absl::HashOf(signature, device) % kSlots;
  return {slot, versions_[slot].load(std::memory_order_acquire), roster_->generation()};
}

bool Lookup::IsCurrent(const Freshness& freshness) const {
  return versions_[freshness.slot].load(std::memory_order_acquire) == freshness.version &&
         roster_->generation() == freshness.generation;
}

void Lookup::Published(const Key& key) {
  const int64_t number = publications_.fetch_add(1, std::memory_order_acq_rel) + 1;
  std::atomic<int64_t>& version = versions_[FreshnessOf(key).slot];
  // The newest number stays, whoever of two comes last.
  int64_t present = version.load(std::memory_order_acquire);
  while (present < number && !version.compare_exchange_weak(present, number)) {
  }
}

absl::Status Lookup::RememberDevice(const DeviceFingerprint& device) {
  {
    std::lock_guard<std::mutex> lock(devices_mutex_);
    for (const DeviceFingerprint& known : remembered_) {
      if (Print(known) == Print(device)) return absl::OkStatus();
    }
  }
  KILN_RETURN_IF_ERROR(store_->RememberDevice(device));
  std::lock_guard<std::mutex> lock(devices_mutex_);
  remembered_.push_back(device);
  return absl::OkStatus();
}

}  // namespace kiln::server
