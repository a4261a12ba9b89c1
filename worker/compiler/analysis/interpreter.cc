// SPDX-License-Identifier: Apache-2.0
#include "worker/compiler/analysis/interpreter.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "worker/compiler/analysis/evaluator.h"

namespace kiln::compiler {
namespace {

absl::Status CheckInputs(const Graph& graph, const std::vector<HostTensor>& inputs) {
  size_t count = 0;
  for (const Tensor& tensor : graph.tensors) {
    if (tensor.kind != TensorKind::kInput && tensor.kind != TensorKind::kConstant) continue;
    if (count >= inputs.size()) return absl::InvalidArgumentError("inputs: too few");
    const HostTensor& input = inputs[count++];
    const int64_t span = BytesOf(tensor.type, SpanElements(graph, tensor));
    if (input.type != tensor.type || input.shape != StaticShape(graph, tensor) ||
        static_cast<int64_t>(input.bytes.size()) < span) {
      return absl::InvalidArgumentError(
          absl::StrCat(tensor.name, ": type, shape or size is not the workload's"));
    }
  }
  if (count != inputs.size()) return absl::InvalidArgumentError("inputs: too many");
  return absl::OkStatus();
}

// Computes one tensor from its definition, element by element in row-major order.
absl::Status Fill(Evaluator& evaluator, const Graph& graph, const Tensor& tensor,
                  HostTensor& result) {
  const std::vector<int64_t> shape = StaticShape(graph, tensor);
  std::vector<int64_t> index(shape.size(), 0);
  for (int64_t count = result.elements(); count > 0; --count) {
    const Scalar value = evaluator.Evaluate(tensor.definition, index);
    if (!evaluator.status().ok()) return evaluator.status();
    int64_t offset = 0;
    for (size_t axis = 0; axis < shape.size(); ++axis) offset += index[axis] * result.strides[axis];
    if (IsFloat(value.type)) {
      StoreDouble(result, offset, value.number);
    } else {
      StoreInteger(result, offset, value.integer);
    }
    for (size_t axis = shape.size(); axis-- > 0;) {
      if (++index[axis] < shape[axis]) break;
      index[axis] = 0;
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<HostTensor>> Interpret(const Workload& workload,
                                                  const std::vector<HostTensor>& inputs,
                                                  Arithmetic arithmetic) {
  const Graph& graph = workload.graph;
  if (!graph.is_static()) {
    return absl::UnimplementedError("dynamic dims are not interpreted; bind them first");
  }
  if (absl::Status status = CheckInputs(graph, inputs); !status.ok()) return status;
  // The inputs come first among the tensors.
  std::vector<HostTensor> tensors(inputs.begin(), inputs.end());
  for (size_t i = tensors.size(); i < graph.tensors.size(); ++i) {
    Tensor tensor = graph.tensors[i];
    // A temporary of its expression's own float type rounds only as arithmetic does.
    const DType type = graph.nodes[tensor.definition.node].type;
    if (tensor.kind == TensorKind::kTemporary && tensor.type == type && IsFloat(type) &&
        arithmetic == Arithmetic::kDouble) {
      tensor.type = DType::kF64;
    }
    tensors.push_back(MakeHostTensor(graph, tensor, 0));
  }
  Evaluator evaluator(graph, tensors, arithmetic);
  for (int i : graph.order) {
    if (absl::Status s = Fill(evaluator, graph, graph.tensors[i], tensors[i]); !s.ok()) return s;
  }
  std::vector<HostTensor> outputs;
  for (size_t i = 0; i < graph.tensors.size(); ++i) {
    if (graph.tensors[i].kind == TensorKind::kOutput) outputs.push_back(std::move(tensors[i]));
  }
  return outputs;
}

}  // namespace kiln::compiler
