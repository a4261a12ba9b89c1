// SPDX-License-Identifier: Apache-2.0
// Values with every field set, for tests of stores, and a fresh directory to put a database in.
#pragma once

#include <string>

#include "db/store.h"
#include "proto/contract/workload.h"

namespace kiln::db {

// Removed with what it holds when it goes out of scope.
class TestDirectory {
 public:
  TestDirectory();
  ~TestDirectory();
  TestDirectory(const TestDirectory&) = delete;
  const std::string& path() const { return path_; }
  std::string File(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

DeviceFingerprint SampleDevice(int threads = 2);
// The n-th of as many workloads as one likes: a canonical text, and its true signature.
std::string SampleCanonical(int n);
Key SampleKey(int n);
WorkloadSpec SampleSpec(int n);
Artifact SampleArtifact(const std::string& bytes);
// Of SampleKey(n), told apart by `median_ns`; its artifacts are SampleArtifact("code") and
// SampleArtifact("source").
Record SampleRecord(int n, double median_ns = 1000.25);
// Both of SampleRecord's.
absl::Status PutSampleArtifacts(Store& store);
Job SampleJob(int n);
Outcome SampleOutcome(int sequence, Stage stage = Stage::kMeasured);
Operation SampleOperation(const std::string& client = "alice", const std::string& request_id = "");

// Creates, runs and completes the job of SampleKey(n) with SampleRecord(n, median_ns), published.
// The record's id.
absl::StatusOr<std::string> TuneSample(Store& store, int n, double median_ns = 1000.25);

// Every field of a value as text, so that two values can be compared and the difference read.
std::string Describe(const Record& record, bool with_samples = true);
std::string Describe(const Job& job);
std::string Describe(const Outcome& outcome);
std::string Describe(const Operation& operation);

}  // namespace kiln::db
