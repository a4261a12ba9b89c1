// SPDX-License-Identifier: Apache-2.0
#include "worker/compiler/families/contraction/problem.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "worker/compiler/families/epilogue.h"

namespace kiln::compiler::contraction {
namespace {

ProblemAxis Convert(const ContractionForm& form, const ContractionAxis& from,
                    const std::string& name, bool swapped,
                    std::vector<int64_t> EpilogueOperand::*strides, size_t index) {
  ProblemAxis axis{name,   from.extent, swapped ? from.b : from.a, swapped ? from.a : from.b,
                   from.c, {}};
  for (const EpilogueOperand& operand : form.operands)
    axis.operands.push_back(strides == nullptr ? 0 : (operand.*strides)[index]);
  return axis;
}

}  // namespace

bool Problem::empty() const { return row.extent == 0 || column.extent == 0 || OuterCount() == 0; }

int64_t Problem::OuterCount() const {
  int64_t count = 1;
  for (const ProblemAxis& axis : outer) count *= axis.extent;
  return count;
}

double Problem::Flops() const {
  double flops = 2.0 * static_cast<double>(row.extent) * static_cast<double>(column.extent) *
                 static_cast<double>(depth.extent);
  for (const ProblemAxis& axis : outer) flops *= static_cast<double>(axis.extent);
  for (const ProblemAxis& axis : outer_depth) flops *= static_cast<double>(axis.extent);
  return flops;
}

Limits LimitsOf(const DeviceFingerprint& device, DType type) {
  Limits limits;
  const int bits =
      device.vector_bits >= 512 && device.Has("avx512f") ? 512
      : device.vector_bits >= 256 && (device.architecture != "x86-64" || device.Has("avx2"))
          ? std::min(device.vector_bits, 256)
          : 128;
  limits.lanes = bits / Bits(type);
  limits.registers = bits == 512 || device.architecture == "aarch64" ? 32 : 16;
  if (device.l1d_bytes > 0) limits.l1_bytes = device.l1d_bytes;
  if (device.l2_bytes > 0) limits.l2_bytes = device.l2_bytes / std::max(1, device.l2_sharing);
  if (device.l3_bytes > 0) limits.l3_bytes = device.l3_bytes / std::max(1, device.l3_sharing);
  limits.l3_bytes = std::max(limits.l3_bytes, limits.l2_bytes);
  limits.threads = std::max(1, device.threads);
  return limits;
}

Problem MakeProblem(const Workload& workload, const ContractionForm& form, bool swapped) {
  Problem problem;
  problem.a = swapped ? form.b : form.a;
  problem.b = swapped ? form.a : form.b;
  problem.c = form.c;
  problem.a_offset = swapped ? form.b_offset : form.a_offset;
  problem.b_offset = swapped ? form.a_offset : form.b_offset;
  problem.a_constant = swapped ? form.b_constant : form.a_constant;
  problem.b_constant = swapped ? form.a_constant : form.b_constant;
  problem.type = form.type;
  problem.fixed_order = workload.policy.fixed_order;
  problem.trivial = form.trivial_epilogue;
  problem.operands = form.operands;
  for (const EpilogueOperand& operand : form.operands) problem.aliased |= operand.aliases_output;
  if (auto epilogue = MakeEpilogue(workload.graph, form); epilogue.ok())
    problem.epilogue = *std::move(epilogue);
  for (const EpilogueOperand& operand : form.operands) {
    problem.operand_spans.push_back(
        SpanElements(workload.graph, workload.graph.tensors[operand.tensor]));
  }
  const int tensors[3] = {problem.a, problem.b, problem.c};
  for (int i = 0; i < 3; ++i)
    problem.spans[i] = SpanElements(workload.graph, workload.graph.tensors[tensors[i]]);

  const std::vector<int64_t> none(form.operands.size(), 0);
  problem.row = {"m", 1, 0, 0, 0, none};
  problem.column = {"n", 1, 0, 0, 0, none};
  problem.depth = {"k", 1, 0, 0, 0, none};
  auto take = [&](const std::vector<ContractionAxis>& axes,
                  std::vector<int64_t> EpilogueOperand::*strides, ProblemAxis* blocked,
                  std::vector<ProblemAxis>* outer, const std::string& prefix) {
    for (size_t i = 0; i < axes.size(); ++i) {
      if (blocked != nullptr && i + 1 == axes.size()) {
        *blocked = Convert(form, axes[i], blocked->name, swapped, strides, i);
      } else {
        outer->push_back(Convert(form, axes[i], absl::StrCat(prefix, i), swapped, strides, i));
      }
    }
  };
  take(form.batch, &EpilogueOperand::batch, nullptr, &problem.outer, "b");
  take(swapped ? form.n : form.m, swapped ? &EpilogueOperand::n : &EpilogueOperand::m, &problem.row,
       &problem.outer, "r");
  take(swapped ? form.m : form.n, swapped ? &EpilogueOperand::m : &EpilogueOperand::n,
       &problem.column, &problem.outer, "s");
  take(form.k, nullptr, &problem.depth, &problem.outer_depth, "q");
  return problem;
}

}  // namespace kiln::compiler::contraction
