// SPDX-License-Identifier: Apache-2.0
// The last act of a job: the best candidates, the incumbent and the vendor's library are verified
// on every input set and measured in the same rounds; who wins, and whether the incumbent stands,
// is decided there alone.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "worker/bench.h"
#include "worker/job.h"
#include "worker/ledger.h"
#include "worker/subject.h"
#include "worker/workshop.h"

namespace kiln::worker {

inline constexpr char kLibraryFamily[] = "library";

// The best measured candidates so far, with their compiled code.
class Shortlist {
 public:
  void Add(Candidate candidate);
  bool empty() const { return best_.empty(); }
  // Best first; those within reach of the best.
  std::vector<Candidate> Take();

 private:
  std::vector<Candidate> best_;
};

struct Finalist {
  Candidate candidate;
  bool incumbent = false, library = false;
  Verification verification;
  std::vector<double> rounds_ns;
  Measurement measurement;
};

struct Finals {
  std::vector<Finalist> finalists;  // those that passed
  int winner = -1;                  // -1: none passed
  bool incumbent_stands = false;
  std::map<std::string, double>
      contest;  // paired ratios of the winner's time to theirs: above 1, the winner is faster
  Baseline baseline;
};

// Who goes into the finals: the shortlist, the incumbent and the library (schedule library/1, if it
// can be had). Candidates known from earlier jobs are prepared here.
absl::StatusOr<std::vector<Finalist>> Gather(const JobLease& lease,
                                             std::vector<Candidate> shortlist,
                                             const Workshop& workshop, const HostCompiler& compiler,
                                             JobReporter* reporter);

// Verifies and measures them. Those that fail are recorded in the ledger and leave.
absl::StatusOr<Finals> HoldFinals(std::vector<Finalist> finalists, const JobLease& lease,
                                  const Subject& subject, Bench* bench, Ledger* ledger);

}  // namespace kiln::worker
