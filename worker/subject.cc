// SPDX-License-Identifier: Apache-2.0
#include "worker/subject.h"

#include <sys/statvfs.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/contract/error.h"
#include "worker/compiler/analysis/contraction.h"
#include "worker/compiler/analysis/reference.h"
#include "worker/verify/inputs.h"

namespace kiln::worker {
namespace {

// A slow machine still gets its reference: without one there is no job.
constexpr absl::Duration kReferenceCompile = absl::Minutes(2);
// Counting tries combinations one by one; nobody tries more than this.
constexpr int64_t kCountLimit = 1000;
// Beside the tensors: code, stacks, allocator arenas, and the pool's reserved scratch per thread.
constexpr int64_t kChildBytes = int64_t{2} << 30;
constexpr int64_t kChildBytesPerThread = int64_t{192} << 20;
// A reference set is kept in a file only if all of them are small beside what the disk has.
constexpr int64_t kKeptShare = 4;

// No core does more: two fused multiply-adds of full vectors a cycle, at a clock that none reaches.
constexpr double kFastestHz = 8e9;
constexpr double kFusedPerCycle = 2;

bool FitsOnDisk(const std::string& directory, int64_t bytes) {
  struct statvfs space;
  if (statvfs(directory.c_str(), &space) != 0) return false;
  const int64_t free = static_cast<int64_t>(space.f_bavail) * static_cast<int64_t>(space.f_frsize);
  return bytes < free / kKeptShare;
}

absl::StatusOr<std::string> CompileReference(const Workload& workload,
                                             const DeviceFingerprint& device,
                                             const HostCompiler& compiler,
                                             const CancelToken& cancel) {
  KILN_ASSIGN_OR_RETURN(const std::string source, compiler::EmitReference(workload));
  // The device is in the flags because "native" means another thing on each: the cache tells them
  // apart by it.
  const std::vector<std::string> flags = {
      "-O3", "-march=native", absl::StrCat("-DKILN_DEVICE=\"", DeviceId(device), "\""), "-pthread"};
  KILN_ASSIGN_OR_RETURN(CompileResult result,
                        compiler.Compile(source, flags, &cancel, kReferenceCompile));
  if (!result.artifact) {
    return absl::InternalError(absl::StrCat("the reference does not compile (", Print(result.stage),
                                            "): ", result.reason));
  }
  return std::move(result.artifact->bytes);
}

}  // namespace

int64_t BenchBytes(const Workload& workload) {
  const Graph& graph = workload.graph;
  const int64_t sets = static_cast<int64_t>(verify::SetKinds(workload).size());
  double bytes = 0;
  for (const Tensor& tensor : graph.tensors) {
    if (tensor.kind == TensorKind::kTemporary) continue;
    const int64_t span = SpanElements(graph, tensor);
    // The bench's and the verifier's buffers; then per set the inputs, or value and error in f64 of
    // every output.
    const double each = static_cast<double>(BytesOf(tensor.type, span));
    bytes += 2 * each;
    bytes += static_cast<double>(sets) *
             (tensor.kind == TensorKind::kOutput ? 16.0 * static_cast<double>(span) : each);
  }
  return static_cast<int64_t>(std::min(bytes, 4e18));
}

double FloorNs(const Workload& workload, const DeviceFingerprint& device) {
  const absl::StatusOr<compiler::ContractionForm> form = compiler::MatchContraction(workload);
  if (!form.ok()) return 0;
  const double fused = static_cast<double>(form->M()) * static_cast<double>(form->N()) *
                       static_cast<double>(form->K()) * static_cast<double>(form->Batch());
  const double lanes = static_cast<double>(device.vector_bits) / Bits(form->type);
  return fused / (lanes * kFusedPerCycle * kFastestHz * std::max(1, device.threads)) * 1e9;
}

absl::StatusOr<Subject> Analyse(const JobLease& lease, const DeviceFingerprint& here,
                                const Frontend& frontend, const HostCompiler& compiler,
                                const std::string& temp_root, const CancelToken& cancel) {
  Subject subject;
  subject.device = here;
  if (DeviceId(lease.device) != DeviceId(here)) {
    return MakeError(
        absl::StatusCode::kFailedPrecondition,
        absl::StrCat("the job is for device ", DeviceId(lease.device), ", this worker's is ",
                     DeviceId(here)),
        {"WRONG_DEVICE",
         {{"field", "device"}, {"value", DeviceId(lease.device)}, {"allowed", DeviceId(here)}}});
  }
  KILN_ASSIGN_OR_RETURN(subject.workload, CheckWorkload(lease.spec));
  if (subject.workload.signature != lease.signature) {
    return MakeError(
        absl::StatusCode::kFailedPrecondition,
        absl::StrCat("this worker computes signature ", subject.workload.signature, ", the server ",
                     lease.signature, ": they are of different versions"),
        {"VERSION_SKEW", {{"field", "signature"}, {"value", lease.signature}}});
  }
  KILN_ASSIGN_OR_RETURN(subject.space, frontend.MakeSpace(subject.workload, here));
  const int64_t enough = std::clamp<int64_t>(lease.budget.trials, 1, kCountLimit);
  const compiler::SpaceSize size = subject.space->Count(enough);
  if (size.exact) subject.schedules = size.schedules;

  const int64_t needed = BenchBytes(subject.workload);
  if (here.memory_bytes > 0 && needed > here.memory_bytes) {
    return MakeError(absl::StatusCode::kResourceExhausted,
                     absl::StrCat("verifying this workload takes ", needed,
                                  " bytes, the device has ", here.memory_bytes),
                     {"TOO_LARGE",
                      {{"field", "workload"},
                       {"value", absl::StrCat(needed)},
                       {"allowed", absl::StrCat(here.memory_bytes)}}});
  }
  subject.memory_bytes = 2 * needed + kChildBytes + kChildBytesPerThread * here.threads;
  SetupRequest& setup = subject.setup;
  KILN_ASSIGN_OR_RETURN(setup.reference,
                        CompileReference(subject.workload, here, compiler, cancel));
  setup.spec = lease.spec;
  setup.objective = lease.objective;
  setup.threads = here.threads;
  setup.seed = lease.budget.seed;
  setup.last_level_bytes = std::max({here.l3_bytes, here.l2_bytes, here.l1d_bytes});
  setup.floor_ns = FloorNs(subject.workload, here);
  if (FitsOnDisk(temp_root, needed)) setup.directory = temp_root;
  return subject;
}

}  // namespace kiln::worker
