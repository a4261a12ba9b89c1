// SPDX-License-Identifier: Apache-2.0
// A worker without a server: tools, a lease of a small matrix product, and a reporter that
// remembers.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tests/support/faults.h"
#include "tests/worker/processes.h"
#include "worker/job.h"
#include "worker/run_job.h"

namespace kiln::worker {

class ReporterFake : public JobReporter {
 public:
  explicit ReporterFake(const Budget& budget) : budget_(budget) {}
  void Report(const Outcome& outcome) override;
  void Update(const Progress& progress) override;
  Budget CurrentBudget() override;
  absl::StatusOr<std::string> FetchArtifact(const std::string& digest) override;

  std::vector<Outcome> outcomes();
  std::vector<Progress> updates();
  void Raise(const Budget& budget);

  std::map<std::string, std::string> artifacts;  // that can be fetched

 private:
  std::mutex mutex_;
  Budget budget_;
  std::vector<Outcome> outcomes_;
  std::vector<Progress> updates_;
};

// Lives in a folder of its own.
struct TestWorker {
  static absl::StatusOr<TestWorker> Make(const std::string& directory,
                                         absl::Duration compile_limit = absl::Seconds(20));
  JobTools Tools(const Frontend& frontend) const;

  std::unique_ptr<TempRoot> root;
  std::unique_ptr<HostCompiler> compiler;
  DeviceFingerprint device;
};

JobLease MatmulLease(const TestWorker& worker, int64_t m, int64_t n, int64_t k);

// Measures an endless loop with temporary files in `directory`.
int RunJobForEver(const char* directory);

}  // namespace kiln::worker
