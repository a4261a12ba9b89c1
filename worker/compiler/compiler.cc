// SPDX-License-Identifier: Apache-2.0
#include "worker/compiler/compiler.h"

#include "absl/strings/str_cat.h"
#include "worker/compiler/emit/cpp.h"
#include "worker/compiler/emit/plan.h"
#include "worker/compiler/families/library/library.h"
#include "worker/compiler/model/analytic.h"

namespace kiln::compiler {
namespace {

absl::StatusOr<tile::Program> BuildProgram(const Workload& workload,
                                           const DeviceFingerprint& device,
                                           const Schedule& schedule) {
  if (schedule.family == "library") return BuildLibraryProgram(workload, device, schedule);
  for (const Family* family : Families()) {
    if (family->name() != schedule.family) continue;
    if (family->version() != schedule.version) {
      return absl::FailedPreconditionError(
          absl::StrCat("schedule of ", schedule.family, "/", schedule.version,
                       "; this build has version ", family->version()));
    }
    return family->Build(workload, device, schedule);
  }
  return absl::FailedPreconditionError(absl::StrCat("no family is called ", schedule.family));
}

// A schedule that does not fit is FAILED_PRECONDITION here, whatever is wrong with it.
absl::Status AsIllegal(const absl::Status& status) {
  if (status.code() == absl::StatusCode::kInternal ||
      status.code() == absl::StatusCode::kFailedPrecondition)
    return status;
  return absl::FailedPreconditionError(status.message());
}

}  // namespace

absl::StatusOr<Emission> Emit(const Workload& workload, const DeviceFingerprint& device,
                              const Schedule& schedule) {
  auto program = BuildProgram(workload, device, schedule);
  if (!program.ok()) return AsIllegal(program.status());
  Emission emission;
  emission.source = emit::PrintCpp(*program);
  emission.media = "source/c++";
  emission.flags = emit::CompilerFlags(device);
  emission.plan = emit::MakePlan(*program, workload.graph, device);
  emission.emitter = emit::kEmitter;
  return emission;
}

absl::StatusOr<double> Predict(const Workload& workload, const DeviceFingerprint& device,
                               const Schedule& schedule) {
  auto program = BuildProgram(workload, device, schedule);
  if (!program.ok()) return AsIllegal(program.status());
  return model::PredictNanoseconds(*program, device);
}

}  // namespace kiln::compiler
