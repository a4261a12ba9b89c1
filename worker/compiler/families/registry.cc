// SPDX-License-Identifier: Apache-2.0
#include "absl/strings/str_cat.h"
#include "worker/compiler/families/contraction/family.h"
#include "worker/compiler/families/family.h"

namespace kiln::compiler {

const std::vector<const Family*>& Families() {
  static const auto* families = new std::vector<const Family*>{ContractionFamily()};
  return *families;
}

absl::StatusOr<const Family*> MatchFamily(const Workload& workload, const DeviceFingerprint& device,
                                          std::map<std::string, std::string>* refused) {
  std::string reasons;
  for (const Family* family : Families()) {
    const absl::Status status = family->Match(workload, device);
    if (status.ok()) return family;
    if (refused != nullptr) (*refused)[std::string(family->name())] = std::string(status.message());
    absl::StrAppend(&reasons, reasons.empty() ? "" : "; ", family->name(), ": ", status.message());
  }
  return absl::UnimplementedError(absl::StrCat("no family takes this program yet: ", reasons));
}

}  // namespace kiln::compiler
