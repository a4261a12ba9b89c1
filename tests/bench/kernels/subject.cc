// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/kernels/subject.h"

#include <sys/resource.h>
#include <time.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <random>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "proto/contract/plan.h"
#include "worker/compiler/compiler.h"

namespace kiln::bench {
namespace {

// Processor time may fall this far behind: reading the two clocks is not one instant.
constexpr double kOurs = 0.97;

double Seconds(clockid_t clock) {
  timespec t;
  clock_gettime(clock, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

int64_t Preemptions() {
  rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_nivcsw;
}

void* Allocate(int64_t bytes) {
  void* memory = nullptr;
  if (posix_memalign(&memory, 4096, static_cast<size_t>(std::max<int64_t>(64, bytes))) != 0)
    std::abort();
  return memory;
}

struct Artifact {
  std::string digest, bytes;
};

int GiveArtifact(void* context, const char* digest, const void** bytes, size_t* size) {
  const auto* artifact = static_cast<const Artifact*>(context);
  if (artifact->digest != digest) return 1;
  *bytes = artifact->bytes.data();
  *size = artifact->bytes.size();
  return 0;
}

absl::StatusOr<Artifact> Compile(const compiler::Emission& emission, const std::string& directory) {
  const std::string source = directory + "/kernel.cc", object = directory + "/kernel.so",
                    log = directory + "/log";
  std::ofstream(source) << emission.source;
  const std::string command =
      absl::StrCat("g++ ", absl::StrJoin(emission.flags, " "), " -w -shared -fPIC ", source, " -o ",
                   object, " 2> ", log);
  if (std::system(command.c_str()) != 0)
    return absl::InternalError(absl::StrCat("failed: ", command));
  std::ifstream in(object, std::ios::binary);
  Artifact artifact;
  artifact.bytes.assign(std::istreambuf_iterator<char>(in), {});
  artifact.digest = Sha256Hex(artifact.bytes);
  return artifact;
}

}  // namespace

Operands::Operands(const Workload& workload) {
  std::mt19937 random(1);
  std::uniform_real_distribution<float> real(-1, 1);
  for (const Tensor& tensor : workload.graph.tensors) {
    const int64_t elements = SpanElements(workload.graph, tensor);
    float* memory = static_cast<float*>(Allocate(elements * 4));
    for (int64_t i = 0; i < elements; ++i) memory[i] = real(random);
    tensors_.push_back(memory);
    output_elements_ = elements;
  }
}

Operands::~Operands() {
  for (void* memory : tensors_) std::free(memory);
}

absl::StatusOr<std::unique_ptr<Subject>> Subject::Make(const Workload& workload,
                                                       const DeviceFingerprint& device,
                                                       const Schedule& schedule,
                                                       const std::string& directory,
                                                       kiln_pool* pool, const Operands& operands) {
  auto emission = compiler::Emit(workload, device, schedule);
  if (!emission.ok()) return emission.status();
  Artifact artifact;
  if (emission->source.find("extern \"C\"") != std::string::npos) {
    auto compiled = Compile(*emission, directory);
    if (!compiled.ok()) return compiled.status();
    artifact = *std::move(compiled);
  }
  for (Step& step : emission->plan.steps) {
    if (step.kind == StepKind::kKernel || step.kind == StepKind::kPrepack)
      step.artifact = artifact.digest;
  }
  std::unique_ptr<Subject> subject(new Subject);
  subject->schedule_ = schedule;
  subject->pool_ = pool;
  subject->operands_ = &operands;
  const std::string text = PrintPlan(emission->plan);
  if (kiln_plan_load(text.data(), text.size(), GiveArtifact, &artifact, &subject->plan_) != KILN_OK)
    return absl::InternalError(kiln_error());
  subject->workspace_ = Allocate(emission->plan.workspace_bytes);
  if (emission->plan.persistent_bytes > 0 &&
      kiln_plan_prepack(subject->plan_, pool, operands.tensors(), nullptr) != KILN_OK) {
    return absl::InternalError(kiln_error());
  }
  if (kiln_plan_launch(subject->plan_, pool, operands.tensors(), subject->workspace_, nullptr) !=
      KILN_OK)
    return absl::InternalError(kiln_error());
  return subject;
}

Subject::~Subject() {
  if (plan_ != nullptr) kiln_plan_destroy(plan_);
  std::free(workspace_);
}

void Subject::Launch() const {
  if (kiln_plan_launch(plan_, pool_, operands_->tensors(), workspace_, nullptr) != KILN_OK)
    std::abort();
}

Sample Subject::Time(double seconds, bool by_busy) const {
  const int64_t preempted = Preemptions();
  const double start = Seconds(CLOCK_MONOTONIC_RAW), busy = Seconds(CLOCK_PROCESS_CPUTIME_ID);
  double end = start;
  int64_t launches = 0;
  for (int64_t batch = 1; end - start < seconds;) {
    for (int64_t i = 0; i < batch; ++i) Launch();
    launches += batch;
    end = Seconds(CLOCK_MONOTONIC_RAW);
    // No more than are needed, by what has been seen.
    const double left = (start + seconds - end) * static_cast<double>(launches) / (end - start);
    batch = std::max<int64_t>(1, std::min(batch * 2, static_cast<int64_t>(left)));
  }
  const double ours = Seconds(CLOCK_PROCESS_CPUTIME_ID) - busy;
  Sample sample;
  sample.nanoseconds = (by_busy ? ours : end - start) / static_cast<double>(launches) * 1e9;
  sample.undisturbed = by_busy || (Preemptions() == preempted && ours >= kOurs * (end - start));
  return sample;
}

}  // namespace kiln::bench
