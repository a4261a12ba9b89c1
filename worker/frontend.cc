// SPDX-License-Identifier: Apache-2.0
#include "worker/frontend.h"

#include <limits>

#include "absl/strings/str_cat.h"
#include "proto/contract/error.h"
#include "worker/compiler/emit/cpp.h"

namespace kiln::worker {
namespace {

class CompilerFrontend : public Frontend {
 public:
  absl::StatusOr<std::unique_ptr<compiler::Space>> MakeSpace(
      const Workload& workload, const DeviceFingerprint& device) const override {
    KILN_ASSIGN_OR_RETURN(const compiler::Family* family,
                          compiler::MatchFamily(workload, device, nullptr));
    return family->MakeSpace(workload, device);
  }
  absl::StatusOr<compiler::Emission> Emit(const Workload& workload, const DeviceFingerprint& device,
                                          const Schedule& schedule) const override {
    return compiler::Emit(workload, device, schedule);
  }
  double Predict(const Workload& workload, const DeviceFingerprint& device,
                 const Schedule& schedule) const override {
    return compiler::Predict(workload, device, schedule)
        .value_or(std::numeric_limits<double>::infinity());
  }
  std::vector<std::string> families() const override {
    std::vector<std::string> names;
    for (const compiler::Family* family : compiler::Families()) {
      names.push_back(absl::StrCat(family->name(), "/", family->version()));
    }
    return names;
  }
  std::string emitter() const override { return compiler::emit::kEmitter; }
};

}  // namespace

std::unique_ptr<Frontend> MakeFrontend() { return std::make_unique<CompilerFrontend>(); }

}  // namespace kiln::worker
