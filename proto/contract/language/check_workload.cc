// SPDX-License-Identifier: Apache-2.0
// The one door from text to everything else. Reads as the stages follow one another.
#include "absl/strings/str_cat.h"
#include "proto/contract/error.h"
#include "proto/contract/language/access.h"
#include "proto/contract/language/accumulate.h"
#include "proto/contract/language/build.h"
#include "proto/contract/language/canonical.h"
#include "proto/contract/language/declare.h"
#include "proto/contract/language/finish.h"
#include "proto/contract/language/infer.h"
#include "proto/contract/language/liveness.h"
#include "proto/contract/language/memory.h"
#include "proto/contract/language/parser.h"
#include "proto/contract/language/resolve.h"
#include "proto/contract/workload.h"

namespace kiln {
namespace {

// What names mean, where reads go, of what types: all errors of these at once, as far as they are
// independent.
absl::Status CheckNames(const WorkloadSpec& spec, language::Scope* scope) {
  if (scope->program.broken_declarations) return scope->errors.ToStatus();
  absl::Status bound = language::BindDims(spec, scope);
  if (!bound.ok()) return scope->errors.ok() ? bound : scope->errors.ToStatus();
  absl::Status declared = language::DeclareTensors(spec, scope);
  language::ResolveProgram(scope);
  language::CheckAccesses(scope);
  language::FindLive(scope);
  language::InferProgram(scope);
  if (!scope->errors.ok()) return scope->errors.ToStatus();
  return declared;
}

}  // namespace

absl::StatusOr<Workload> CheckWorkload(const WorkloadSpec& spec) {
  Workload workload;
  workload.spec = spec;
  workload.policy = spec.policy;
  language::Diagnostics errors(workload.spec.program);
  language::Program program = language::ParseProgram(workload.spec.program, &errors);
  language::Scope scope(&program, &errors);
  KILN_RETURN_IF_ERROR(CheckNames(spec, &scope));
  language::Built built = language::BuildNodes(&scope);
  KILN_RETURN_IF_ERROR(language::ApplyAccumulators(spec.policy, scope, &built));
  workload.graph = language::FinishGraph(&scope, built);
  KILN_RETURN_IF_ERROR(errors.ToStatus());
  KILN_RETURN_IF_ERROR(language::ApplyMemory(spec, &workload.graph));
  workload.canonical = language::CanonicalText(workload.graph, spec.policy);
  workload.signature = Sha256Hex(absl::StrCat("kiln/1\n", workload.canonical));
  return workload;
}

}  // namespace kiln
