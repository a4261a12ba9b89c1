// SPDX-License-Identifier: Apache-2.0
// What became of a candidate: measured, or failed at a stage with the reason. A bad candidate is a
// value, not an error.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "proto/contract/objective.h"
#include "proto/contract/schedule.h"

namespace kiln {

enum class Stage : uint8_t {
  kMeasured,
  kIllegal,
  kEmit,
  kCompile,
  kLaunch,
  kTimeout,
  kCrash,
  kResources,
  kOutOfBounds,
  kFinding,
  kMismatch,
  kTooSlow
};
absl::string_view Print(Stage stage);  // "measured", "out_of_bounds", ...
std::optional<Stage> ParseStage(absl::string_view word);

enum class Timer : uint8_t { kCupti, kEvents, kClock, kSimulated };
absl::string_view Print(Timer timer);
std::optional<Timer> ParseTimer(absl::string_view word);

// Timings of one plan under one objective by one timer and method. Those of different timers,
// methods or objectives are never ranked together.
struct Measurement {
  Timer timer = Timer::kClock;
  int method_version = 0;  // of worker/measure; changes when the numbers' meaning does
  Objective objective;
  std::vector<int64_t> samples_ns;  // per call, raw, capped in number; none for a summary
  int64_t samples = 0;
  double median_ns = 0, min_ns = 0, mean_ns = 0, iqr_ns = 0;
  double ci95_lo_ns = 0, ci95_hi_ns = 0;    // of the median, by order statistics
  int64_t inner_iterations = 1;             // calls per sample
  std::map<std::string, int64_t> rejected;  // reason -> samples discarded
  std::map<std::string, std::string>
      conditions;  // "clock_mhz_before", "load", "threads", "governor", ...
};

// Proof that an artifact is right on the real shape.
struct Verification {
  std::string method;    // "f64-reference/1"
  int sets = 0;          // input sets passed
  double max_error = 0;  // largest |got - want| over the tolerance's scale, of all sets
  double tolerance = 0;
  uint64_t seed = 0;
  std::vector<std::string> set_names;  // "random", "small-integer", "cancellation", ...
};

struct Outcome {
  Schedule schedule;
  Stage stage = Stage::kMeasured;
  std::string reason;                      // empty if measured; at most 1 KiB, the first error line
  std::optional<Measurement> measurement;  // kMeasured, kTooSlow
  double predicted_ns = 0;
  int64_t emit_ns = 0, compile_ns = 0, verify_ns = 0, measure_ns = 0;  // what it cost
  std::string toolchain;  // compiler identity, version and flags
  int sequence = 0;       // within the job: (job, lease, sequence) is idempotent
};

}  // namespace kiln
