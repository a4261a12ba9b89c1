// SPDX-License-Identifier: Apache-2.0
// The worker's side of the bench child. Starts one when it is needed and a fresh one after it died:
// whatever a candidate does to it costs that candidate alone, and becomes a stage and a reason. One
// thread.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <variant>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "worker/bench_protocol.h"
#include "worker/compile/child.h"
#include "worker/compile/temp_root.h"

namespace kiln::worker {

struct BenchOptions {
  std::string binary;                               // answers to --supervise and --bench-child
  absl::Duration launch_limit = absl::Seconds(10);  // of one launch, from when it starts
  absl::Duration reference_limit =
      absl::Minutes(5);      // of computing the reference of one input set, and judging by it
  int64_t memory_bytes = 0;  // of address space; 0: no limit
};

// How the child died under a request.
struct Death {
  Stage stage = Stage::kCrash;
  std::string reason;
  int64_t entrant = -1;  // of a contest, that was being launched
};

class Bench {
 public:
  // `root` and `cancel` outlive it. Nothing is started yet.
  Bench(BenchOptions options, const TempRoot& root, SetupRequest setup, const CancelToken& cancel);

  // A child that is set up, at most one restart away. Errors (here and below): CANCELLED;
  // UNAVAILABLE, RESOURCE_EXHAUSTED and INTERNAL: no candidate is to blame.
  absl::StatusOr<ReadyAnswer> Ready();

  // `launch_limit` may tighten the options'.
  absl::StatusOr<TriedAnswer> Try(const TryRequest& request, absl::Duration launch_limit);
  absl::StatusOr<EnteredAnswer> Enter(const EnterRequest& request);
  absl::StatusOr<std::variant<ContestedAnswer, Death>> Contest(const ContestRequest& request);
  // Forgets all entrants, with the child that holds them.
  void Reset() { child_.reset(); }

  bool alive() const { return child_ != nullptr; }
  int starts() const { return starts_; }

 private:
  absl::Status Start();
  absl::StatusOr<std::variant<Frame, Death>> Ask(FrameType type, std::string payload,
                                                 FrameType answer, absl::Duration launch_limit);
  Death Autopsy(const std::optional<FaultNote>& note);
  Death PutDown(absl::Duration limit);

  BenchOptions options_;
  const TempRoot& root_;
  SetupRequest setup_;
  const CancelToken& cancel_;
  std::unique_ptr<Child> child_;
  ReadyAnswer ready_;
  int starts_ = 0;
};

}  // namespace kiln::worker
