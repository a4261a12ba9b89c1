// SPDX-License-Identifier: Apache-2.0
// What a job is to the worker: a lease in, reports on the way, an end out. Plain values and one
// interface; no gRPC, so that RunJob runs in tests without a server.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "proto/contract/job.h"

namespace kiln::worker {

// Crashed or hung before, under this toolchain.
struct Blocked {
  Schedule schedule;
  Stage stage = Stage::kCrash;
  std::string toolchain;
};

struct JobLease {
  std::string job;  // name
  int64_t epoch = 0;
  WorkloadSpec spec;
  std::string signature;
  DeviceFingerprint device;
  Objective objective;
  Budget budget;                    // what is left of it
  std::optional<Record> incumbent;  // published now
  std::vector<Outcome> known;       // earlier ones of the key, of any toolchain
  std::vector<Blocked> blocklist;
  int first_sequence = 0;
};

// Who hears of a job's progress. Called on the job's thread; returns soon.
class JobReporter {
 public:
  virtual ~JobReporter() = default;
  virtual void Report(const Outcome& outcome) = 0;  // numbered; facts, never taken back
  virtual void Update(const Progress& progress) = 0;
  // The budget as it is now, in the terms of the lease's: raised by a caller who joined.
  virtual Budget CurrentBudget() = 0;
  // Of the incumbent's plan. NOT_FOUND, UNAVAILABLE: the worker rebuilds it from its schedule.
  virtual absl::StatusOr<std::string> FetchArtifact(const std::string& digest) = 0;
};

struct JobEnd {
  enum Kind {
    kRecord,     // `record` is to be published, with `artifacts`
    kKeep,       // the incumbent stands
    kFailed,     // `error`
    kCancelled,  // as asked
  };
  Kind kind = kFailed;
  Record record;
  std::vector<Artifact> artifacts;
  absl::Status error;
  Progress progress;  // the last one
};

}  // namespace kiln::worker
