// SPDX-License-Identifier: Apache-2.0
#include "worker/compiler/emit/plan.h"

#include <algorithm>
#include <set>

#include "worker/compiler/emit/cpp.h"

namespace kiln::compiler::emit {
namespace {

using tile::Buffer;
using tile::Level;

Argument ArgumentOf(const Buffer& buffer, int64_t offset_elements) {
  const int64_t offset = offset_elements * (Bits(buffer.type) / 8);
  if (buffer.level == Level::kGlobal)
    return {.kind = ArgumentKind::kTensor, .index = buffer.tensor, .offset = offset};
  return {.kind = ArgumentKind::kWorkspace,
          .offset = buffer.base + offset,
          .persistent = buffer.level == Level::kPersistent};
}

Step MakeStep(const tile::Program& program, const tile::Step& from) {
  Step step;
  if (from.kind == tile::StepKind::kLibrary) {
    step.kind = StepKind::kLibrary;
    step.entry = from.call.routine;
    step.arguments = {ArgumentOf(program.buffers[from.call.a], from.call.a_offset),
                      ArgumentOf(program.buffers[from.call.b], from.call.b_offset),
                      ArgumentOf(program.buffers[from.call.c], from.call.c_offset)};
    for (int64_t number : from.call.numbers)
      step.arguments.push_back({.kind = ArgumentKind::kScalar, .integer = number});
    return step;
  }
  step.kind = from.kind == tile::StepKind::kPrepack ? StepKind::kPrepack : StepKind::kKernel;
  step.entry = EntryName(from);
  step.grid[0].value = Blocks(program, from);
  step.shared_bytes = ScratchBytes(program, from);
  for (int buffer : ArgumentBuffers(program, from))
    step.arguments.push_back(ArgumentOf(program.buffers[buffer], 0));
  return step;
}

}  // namespace

Plan MakePlan(const tile::Program& program, const Graph& graph, const DeviceFingerprint& device) {
  Plan plan;
  for (const tile::Step& step : program.steps) plan.steps.push_back(MakeStep(program, step));
  plan.workspace_bytes = program.workspace_bytes;
  plan.persistent_bytes = program.persistent_bytes;
  for (const Tensor& tensor : graph.tensors) {
    if (tensor.kind == TensorKind::kTemporary) continue;
    const int64_t bytes = Bits(tensor.type) / 8;
    plan.tensors.push_back({.alignment = std::max<int64_t>(1, bytes),
                            .span_bytes = SpanElements(graph, tensor) * bytes,
                            .written = tensor.kind == TensorKind::kOutput,
                            .alias_of = tensor.alias_of});
  }
  plan.features = UsedFeatures(device);
  return plan;
}

std::vector<std::string> UsedFeatures(const DeviceFingerprint& device) {
  std::vector<std::string> used;
  if (device.architecture != "x86-64") return used;
  if (device.vector_bits >= 256 && device.Has("avx2")) used.push_back("avx2");
  if (device.vector_bits >= 512 && device.Has("avx512f")) used.push_back("avx512f");
  if (device.Has("fma")) used.push_back("fma");
  return used;
}

std::vector<std::string> CompilerFlags(const DeviceFingerprint& device) {
  std::vector<std::string> flags{"-std=gnu++17", "-O3", "-ffp-contract=fast", "-fno-math-errno",
                                 "-fno-trapping-math"};
  for (const std::string& feature : UsedFeatures(device)) flags.push_back("-m" + feature);
  if (device.architecture == "x86-64" && device.vector_bits >= 512 && device.Has("avx512f"))
    flags.push_back("-mprefer-vector-width=512");
  return flags;
}

}  // namespace kiln::compiler::emit
