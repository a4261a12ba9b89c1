// SPDX-License-Identifier: Apache-2.0
#include "server/staleness.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace kiln::server {
namespace {

std::vector<std::string> Differences(const std::string& toolchain, const std::string& emitter,
                                     int method_version, const Worker& worker) {
  std::vector<std::string> differences;
  // A record's toolchain is the worker's with the flags behind it; a library's plan was compiled by
  // nobody.
  if (!toolchain.empty() && !worker.toolchain.empty() &&
      !absl::StartsWith(toolchain, worker.toolchain)) {
    differences.push_back(
        absl::StrCat("toolchain: stored ", toolchain, ", today ", worker.toolchain));
  }
  if (!emitter.empty() && !worker.emitter.empty() && emitter != worker.emitter) {
    differences.push_back(absl::StrCat("emitter: stored ", emitter, ", today ", worker.emitter));
  }
  if (worker.method_version != 0 && method_version != worker.method_version) {
    differences.push_back(
        absl::StrCat("method: stored ", method_version, ", today ", worker.method_version));
  }
  return differences;
}

}  // namespace

std::vector<std::string> StaleBecause(const Record& record, const std::vector<Worker>& workers) {
  return StaleBecause(record.toolchain, record.emitter, record.measurement.method_version, workers);
}

std::vector<std::string> StaleBecause(const std::string& toolchain, const std::string& emitter,
                                      int method_version, const std::vector<Worker>& workers) {
  std::vector<std::string> fewest;
  bool first = true;
  for (const Worker& worker : workers) {
    std::vector<std::string> differences = Differences(toolchain, emitter, method_version, worker);
    if (differences.empty()) return {};
    if (first || differences.size() < fewest.size()) fewest = std::move(differences);
    first = false;
  }
  return fewest;
}

bool DiffersInAttributes(const Record& a, const Record& b) {
  const bool compiled = !a.toolchain.empty() && !b.toolchain.empty();
  const bool emitted = !a.emitter.empty() && !b.emitter.empty();
  return (compiled && a.toolchain != b.toolchain) || (emitted && a.emitter != b.emitter) ||
         a.measurement.method_version != b.measurement.method_version;
}

}  // namespace kiln::server
