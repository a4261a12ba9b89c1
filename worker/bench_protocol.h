// SPDX-License-Identifier: Apache-2.0
// What the worker asks of its bench child, and what it answers. Plain data; every Encode has its
// Decode, which returns nothing if the payload is malformed.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "proto/contract/objective.h"
#include "proto/contract/outcome.h"
#include "proto/contract/spec.h"
#include "worker/message.h"

namespace kiln::worker {

enum class FrameType : uint32_t {
  kSetup = 1,
  kTry,
  kEnter,
  kContest,  // requests
  kReady,
  kTried,
  kEntered,
  kContested,  // their answers
  kPhase,      // what the child is about to do: its time limit starts anew
  kFault,      // the child's last words, from a signal handler
  kError,      // an answer: the request failed, and no candidate is to blame
};

// The workload that all later requests are about.
struct SetupRequest {
  WorkloadSpec spec;
  Objective objective;
  int threads = 1;
  uint64_t seed = 0;
  int64_t last_level_bytes = 0;  // of the cache that a cold sample must get out of
  double floor_ns = 0;           // no right kernel is faster
  int64_t launch_limit_ns = 0;   // what the worker allows a launch, and a reference set: the child
  int64_t reference_limit_ns = 0;  // ends itself should the worker be gone; 0: it does not
  std::string reference;           // shared object with kiln_reference
  std::string directory;           // where reference sets are kept for the next child of the job
};
struct ReadyAnswer {
  std::string library;       // "openblas 0.3.21 zen"; empty: none
  int64_t reference_ns = 0;  // that computing the reference sets of a screen took
  int64_t sets = 0;          // of a full verification
};

struct PlanFiles {
  std::string plan;                              // text
  std::map<std::string, std::string> artifacts;  // digest -> bytes
};

// Load, verify on the screening sets, measure for the search, forget.
struct TryRequest {
  PlanFiles files;
  double best_ns = 0;  // median of the best so far; 0: none
  int64_t launch_limit_ns =
      0;  // a launch beyond it in the first verification is too slow to go on; 0: no such limit
  int64_t max_samples = 10;
  double half_width = 0.02;
  double total_ns = 1e9;
};
struct TriedAnswer {
  Stage stage = Stage::kMeasured;
  std::string reason;
  std::optional<Measurement> measurement;
  int64_t verify_ns = 0, measure_ns = 0;
};

// Load and verify on all sets; stays loaded as entrant 0, 1, ... of the contest.
struct EnterRequest {
  PlanFiles files;
};
struct EnteredAnswer {
  Stage stage = Stage::kMeasured;
  std::string reason;
  Verification verification;
  int64_t verify_ns = 0;
};

// Interleaved rounds of all entrants.
struct ContestRequest {
  int64_t min_rounds = 30, max_rounds = 512;
  double half_width = 0.005, total_ns = 4e9;
};
struct ContestedAnswer {
  std::vector<std::vector<double>> rounds_ns;  // per entrant and round, 0: rejected
  std::vector<Measurement> measurements;       // per entrant
};

// What the child is at, and for how long it may be.
struct PhaseNote {
  enum Kind { kReference, kLaunch, kMeasure } kind = kLaunch;
  double expected_ns = 0;  // that it takes by design, on top of the limit
};

// Written field by field in a signal handler (bench_fault.cc).
struct FaultNote {
  bool out_of_bounds = false;
  int64_t entrant = -1;      // of a contest, whose launch was under way
  int64_t memory_bytes = 0;  // that the child had in use, of the kind that is limited
  std::string text;
};

struct ErrorAnswer {
  int code = 0;
  std::string message;
};

std::string Encode(const SetupRequest& value);
std::string Encode(const ReadyAnswer& value);
std::string Encode(const TryRequest& value);
std::string Encode(const TriedAnswer& value);
std::string Encode(const EnterRequest& value);
std::string Encode(const EnteredAnswer& value);
std::string Encode(const ContestRequest& value);
std::string Encode(const ContestedAnswer& value);
std::string Encode(const PhaseNote& value);
std::string Encode(const ErrorAnswer& value);

// Of every one of the above.
template <typename T>
std::optional<T> Decode(absl::string_view payload);
template <>
std::optional<SetupRequest> Decode(absl::string_view payload);
template <>
std::optional<ReadyAnswer> Decode(absl::string_view payload);
template <>
std::optional<TryRequest> Decode(absl::string_view payload);
template <>
std::optional<TriedAnswer> Decode(absl::string_view payload);
template <>
std::optional<EnterRequest> Decode(absl::string_view payload);
template <>
std::optional<EnteredAnswer> Decode(absl::string_view payload);
template <>
std::optional<ContestRequest> Decode(absl::string_view payload);
template <>
std::optional<ContestedAnswer> Decode(absl::string_view payload);
template <>
std::optional<PhaseNote> Decode(absl::string_view payload);
template <>
std::optional<FaultNote> Decode(absl::string_view payload);
template <>
std::optional<ErrorAnswer> Decode(absl::string_view payload);

}  // namespace kiln::worker
