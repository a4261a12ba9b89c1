// SPDX-License-Identifier: Apache-2.0
// A search and the interest in it: jobs, operations, leases, as the server persists them and the
// wire carries them.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "proto/contract/record.h"

namespace kiln {

struct Budget {
  int64_t trials = 200;  // evaluations, failed ones too
  double seconds =
      60;  // from the first lease, time without a lease not counted; final re-measurement included
  uint64_t seed = 0;
  double wait_worker_seconds = 600;  // for a fitting worker
  bool operator==(const Budget&) const = default;
};

enum class JobState : uint8_t { kQueued, kRunning, kSucceeded, kFailed, kCancelled };
absl::string_view Print(JobState state);  // "queued", ...
std::optional<JobState> ParseJobState(absl::string_view word);
inline bool IsEnd(JobState s) { return s != JobState::kQueued && s != JobState::kRunning; }

struct Progress {
  std::string
      phase;  // "waiting", "queued", "analysing", "searching", "finalists", "publishing", "done"
  int64_t queue_position = 0;             // 0: running
  int64_t done = 0, total = 0;            // unique candidates
  std::map<std::string, int64_t> failed;  // stage -> count
  double best_ns = 0;                     // 0: none yet
  std::string best_schedule;
  double seconds_left = 0;
  absl::Time changed;  // of the last progress
};

struct Job {
  std::string name;  // "jobs/" and 16 hex digits
  Key key;
  WorkloadSpec spec;
  std::string canonical;
  DeviceFingerprint device;  // or the class asked for, resolved at submission
  Budget budget;
  int priority = 0;    // smaller runs earlier
  std::string client;  // for fairness
  JobState state = JobState::kQueued;
  bool force = false;
  int attempts = 0;                 // workers lost; three fail the job
  std::vector<std::string> losses;  // one line per lost worker: who, why, last candidate
  int64_t lease_epoch = 0;
  std::string worker;         // that holds the lease, else ""
  double leased_seconds = 0;  // used of the budget, over all leases
  Progress progress;
  std::string record;  // id of the winner's record, once succeeded
  int error_code = 0;  // absl::StatusCode, once failed
  std::string error_message, error_reason;
  std::map<std::string, int64_t> histogram;  // stage -> outcomes
  int operations = 0;                        // not cancelled
  absl::Time created, started, ended;
};

// One caller's interest in a job (AIP-151), persisted under its own name.
struct Operation {
  std::string name;  // "operations/" and 16 hex digits
  std::string job;   // name
  std::string client, request_id;
  bool cancelled = false;
  absl::Time created;
};

}  // namespace kiln
