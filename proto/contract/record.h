// SPDX-License-Identifier: Apache-2.0
// A verified, measured schedule, and what answers a key. Records are append-only; publications
// decide which one answers.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "proto/contract/device.h"
#include "proto/contract/objective.h"
#include "proto/contract/outcome.h"
#include "proto/contract/plan.h"
#include "proto/contract/schedule.h"
#include "proto/contract/spec.h"

namespace kiln {

// What a record answers. `salt` is the database's epoch salt: raising it disowns what was stored
// before.
struct Key {
  std::string signature;
  std::string device;  // DeviceId
  Objective objective;
  int64_t salt = 0;
  bool operator==(const Key&) const = default;
};
std::string Print(const Key& key);  // "SIGNATURE DEVICE warm,burst 0": unique, for maps and logs

enum class Match : uint8_t { kExact, kStale, kNear, kPredicted, kDefault, kNone };
absl::string_view Print(Match match);
std::optional<Match> ParseMatch(absl::string_view word);

struct Artifact {
  std::string digest;  // SHA-256 of `bytes`
  std::string media;   // "elf-so", "cubin", "ptx", "source/c++", "source/cuda"
  std::string bytes;
};

struct Baseline {
  std::string name;  // "openblas 0.3.21 zen"; empty: none was present
  double median_ns = 0;
  double ratio =
      0;  // median over paired rounds of baseline time / winner's time: above 1, Kiln is faster
};

struct Record {
  std::string id;  // "rec-" and 16 hex digits, given by the store
  Key key;
  std::string canonical;  // of the workload, compared on every hit
  WorkloadSpec spec;      // of the first asker, so that it can be tuned and explained again
  DeviceFingerprint device;
  Schedule schedule;  // family "library" where the vendor's routine won
  Plan plan;
  std::vector<std::string> artifacts;  // digests: compiled ones and sources
  std::string source;                  // digest of the emitted source; empty for a library plan
  Measurement measurement;             // the interleaved re-measurement, never the search's own
  Verification verification;
  Baseline baseline;
  std::map<std::string, double> contest;  // paired ratios: "incumbent", "baseline", ...
  std::string toolchain;                  // compiler identity, version, flags
  std::string emitter;                    // emitter and its version
  std::string kiln_version;
  std::string worker;  // who measured
  std::string job;
  std::map<std::string, int64_t> trials;  // stage -> count, "measured" among them
  bool budget_exhausted = false;  // the search ended by budget, not because more would not pay
  uint64_t seed = 0;
  absl::Time created;
};

}  // namespace kiln
