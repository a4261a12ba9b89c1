// SPDX-License-Identifier: Apache-2.0
// Records, artifacts, devices and the salt; store_fake_jobs.cc has the rest.
#include <algorithm>
#include <utility>

#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "proto/contract/workload.h"
#include "tests/support/store_fake.h"
#include "tests/support/store_fake_parts.h"

namespace kiln::db {

void StoreFake::FailWrites(absl::Status status) {
  Lock lock(mutex_);
  write_failure_ = std::move(status);
}

void StoreFake::FailReads(absl::Status status) {
  Lock lock(mutex_);
  read_failure_ = std::move(status);
}

void StoreFake::DamageRecord(absl::string_view id) {
  Lock lock(mutex_);
  damaged_.insert(std::string(id));
}

std::string StoreFake::NextName(absl::string_view prefix) {
  return absl::StrFormat("%s%016x", prefix, ++last_id_);
}

std::string StoreFake::Insert(Record record) {
  record.id = NextName("rec-");
  record.created = absl::Now();
  Remember(record.device);
  std::string id = record.id;
  records_[id] = std::move(record);
  return id;
}

void StoreFake::Remember(const DeviceFingerprint& device) {
  const std::string id = DeviceId(device);
  for (const DeviceFingerprint& known : devices_) {
    if (DeviceId(known) == id) return;
  }
  devices_.push_back(device);
}

void StoreFake::Publish(const std::string& record) {
  std::string& published = published_[Print(records_.at(record).key)];
  answers_.erase(published);
  published = record;
  publications_.push_back(record);
}

bool StoreFake::HasArtifacts(const Record& record) const {
  return std::all_of(record.artifacts.begin(), record.artifacts.end(),
                     [&](const std::string& digest) { return artifacts_.count(digest) > 0; });
}

// --- lookups ---

absl::StatusOr<std::optional<Record>> StoreFake::FindPublished(const Key& key,
                                                               absl::string_view canonical) {
  Lock lock(mutex_);
  KILN_RETURN_IF_ERROR(read_failure_);
  auto it = published_.find(Print(key));
  if (it == published_.end() || damaged_.count(it->second)) return std::optional<Record>();
  Record record = records_.at(it->second);
  if (record.canonical != canonical) return std::optional<Record>();
  if (!HasArtifacts(record)) return std::optional<Record>();
  record.measurement.samples_ns.clear();
  return std::make_optional(std::move(record));
}

absl::StatusOr<Record> StoreFake::GetRecord(absl::string_view id) {
  Lock lock(mutex_);
  KILN_RETURN_IF_ERROR(read_failure_);
  auto it = records_.find(std::string(id));
  if (it == records_.end()) return NotFound("record", id);
  if (damaged_.count(it->first)) {
    return MakeError(absl::StatusCode::kDataLoss, absl::StrCat("record ", id, " is damaged"),
                     {"ROW_DAMAGED", {{"name", it->first}}});
  }
  return it->second;
}

absl::StatusOr<PageOf<Record>> StoreFake::ListRecords(const RecordFilter& filter,
                                                      const Page& page) {
  Lock lock(mutex_);
  KILN_RETURN_IF_ERROR(read_failure_);
  return NewestFirst(records_, page, [&](const Record& r) {
    return (filter.signature.empty() || r.key.signature == filter.signature) &&
           (filter.device.empty() || r.key.device == filter.device) && !damaged_.count(r.id);
  });
}

absl::StatusOr<bool> StoreFake::IsPublished(absl::string_view id) {
  Lock lock(mutex_);
  KILN_RETURN_IF_ERROR(read_failure_);
  auto it = records_.find(std::string(id));
  if (it == records_.end()) return NotFound("record", id);
  auto published = published_.find(Print(it->second.key));
  return published != published_.end() && published->second == id && it->second.key.salt == salt_;
}

absl::StatusOr<std::vector<DeviceFingerprint>> StoreFake::ListDevices() {
  Lock lock(mutex_);
  KILN_RETURN_IF_ERROR(read_failure_);
  return devices_;
}

absl::Status StoreFake::RememberDevice(const DeviceFingerprint& device) {
  Lock lock(mutex_);
  KILN_RETURN_IF_ERROR(write_failure_);
  Remember(device);
  return absl::OkStatus();
}

// --- answers ---

absl::StatusOr<std::optional<StoredAnswer>> StoreFake::FindAnswer(absl::string_view question) {
  Lock lock(mutex_);
  KILN_RETURN_IF_ERROR(read_failure_);
  for (const auto& [record, answer] : answers_) {
    if (answer.question != question) continue;
    ++answer_hits_;
    return std::make_optional(answer);
  }
  return std::optional<StoredAnswer>();
}

absl::StatusOr<AnswerPage> StoreFake::ListAnswers(int64_t before, int limit) {
  Lock lock(mutex_);
  KILN_RETURN_IF_ERROR(read_failure_);
  AnswerPage page;
  // Counted from 1, the oldest.
  const int64_t last = before == 0 ? static_cast<int64_t>(answers_.size()) : before - 1;
  for (int64_t n = last; n > 0 && n > last - limit; --n) {
    page.answers.push_back(std::next(answers_.begin(), n - 1)->second);
    page.before = n;
  }
  return page;
}

absl::StatusOr<Unanswered> StoreFake::ListUnanswered(int64_t version, int limit) {
  Lock lock(mutex_);
  KILN_RETURN_IF_ERROR(read_failure_);
  Unanswered batch;
  batch.upto = version == answers_version_ ? answered_ : 0;
  while (batch.publications < limit && batch.upto < static_cast<int64_t>(publications_.size())) {
    const std::string& record = publications_[batch.upto++];
    ++batch.publications;
    if (damaged_.count(record)) continue;
    batch.records.push_back(records_.at(record));
    batch.records.back().measurement.samples_ns.clear();
  }
  return batch;
}

absl::Status StoreFake::PutAnswers(int64_t version, int64_t upto,
                                   const std::vector<StoredAnswer>& answers) {
  Lock lock(mutex_);
  KILN_RETURN_IF_ERROR(write_failure_);
  for (const StoredAnswer& answer : answers) {
    if (!records_.count(answer.record)) return NotFound("record", answer.record);
  }
  for (const StoredAnswer& answer : answers) {
    const Record& record = records_.at(answer.record);
    const auto published = published_.find(Print(record.key));
    const bool answers_now = published != published_.end() && published->second == answer.record;
    if (answers_now && HasArtifacts(record)) answers_[answer.record] = answer;
  }
  answered_ = upto;
  answers_version_ = version;
  return absl::OkStatus();
}

// --- artifacts ---

absl::Status StoreFake::PutArtifact(const Artifact& artifact) {
  Lock lock(mutex_);
  KILN_RETURN_IF_ERROR(write_failure_);
  if (Sha256Hex(artifact.bytes) != artifact.digest) {
    return InvalidField("DIGEST_MISMATCH", "artifact.digest", artifact.digest,
                        "not the digest of the bytes", Sha256Hex(artifact.bytes));
  }
  artifacts_.emplace(artifact.digest, artifact);
  return absl::OkStatus();
}

absl::StatusOr<Artifact> StoreFake::GetArtifact(absl::string_view digest) {
  Lock lock(mutex_);
  KILN_RETURN_IF_ERROR(read_failure_);
  auto it = artifacts_.find(std::string(digest));
  if (it == artifacts_.end()) return NotFound("artifact", digest);
  return it->second;
}

absl::StatusOr<bool> StoreFake::HasArtifact(absl::string_view digest) {
  Lock lock(mutex_);
  KILN_RETURN_IF_ERROR(read_failure_);
  return artifacts_.count(std::string(digest)) > 0;
}

// --- the database itself ---

absl::StatusOr<int64_t> StoreFake::Salt() {
  Lock lock(mutex_);
  KILN_RETURN_IF_ERROR(read_failure_);
  return salt_;
}

absl::Status StoreFake::SetSalt(int64_t salt) {
  Lock lock(mutex_);
  KILN_RETURN_IF_ERROR(write_failure_);
  if (salt <= salt_) {
    return InvalidField("SALT_MUST_GROW", "salt", absl::StrCat(salt), "not above the present one",
                        absl::StrCat("more than ", salt_));
  }
  salt_ = salt;
  return absl::OkStatus();
}

absl::Status StoreFake::ImportRecords(const std::vector<Record>& records) {
  Lock lock(mutex_);
  KILN_RETURN_IF_ERROR(write_failure_);
  for (const Record& record : records) {
    const std::string id = Insert(record);
    if (!published_.count(Print(record.key))) Publish(id);
  }
  return absl::OkStatus();
}

std::map<std::string, int64_t> StoreFake::Counters() {
  Lock lock(mutex_);
  return {{"records", static_cast<int64_t>(records_.size())},
          {"artifacts", static_cast<int64_t>(artifacts_.size())},
          {"quarantined", static_cast<int64_t>(damaged_.size())},
          {"unanswered", static_cast<int64_t>(publications_.size()) - answered_},
          {"answer_hits", answer_hits_}};
}

}  // namespace kiln::db
