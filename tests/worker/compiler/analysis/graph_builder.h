// SPDX-License-Identifier: Apache-2.0
// Graphs by hand, for tests that want one that no program text spells, or none of the parser at
// all. Each method appends a node and returns its id; strides are packed unless given.
#pragma once

#include <string>
#include <vector>

#include "proto/contract/workload.h"

namespace kiln::compiler {

class GraphBuilder {
 public:
  Term Integer(int64_t value) {
    return {Add({.op = Op::kLiteral, .type = DType::kI64, .integer = value}), {}};
  }
  Term Float(double value, DType type = DType::kF32) {
    return {Add({.op = Op::kLiteral, .type = type, .number = value}), {}};
  }
  NodeId Variable() { return Add({.op = Op::kVar, .type = DType::kI64, .free_vars = 1}); }

  int AddTensor(TensorKind kind, const std::string& name, std::vector<int64_t> shape,
                const std::vector<int64_t>& strides = {}, DType type = DType::kF32) {
    Tensor tensor{.kind = kind, .name = name, .type = type, .strides = strides};
    for (int64_t extent : shape) tensor.shape.push_back(Integer(extent));
    if (strides.empty()) {
      tensor.strides.assign(shape.size(), 1);
      for (size_t i = shape.size(); i-- > 1;) tensor.strides[i - 1] = tensor.strides[i] * shape[i];
    }
    for (size_t i = 0; i < shape.size(); ++i) tensor.axis_names.push_back("d" + std::to_string(i));
    graph.tensors.push_back(tensor);
    return static_cast<int>(graph.tensors.size()) - 1;
  }

  // tensor[v0, v1, ...], one free variable an axis.
  NodeId Read(int tensor) {
    const Tensor& read = graph.tensors[tensor];
    const DType type = read.type;
    Node node{.op = Op::kRead, .type = type, .index = tensor};
    node.free_vars = static_cast<int>(read.shape.size());
    NodeId variable = Variable();
    for (int i = 0; i < node.free_vars; ++i) node.args.push_back({variable, {i}});
    return Add(node);
  }

  NodeId Apply(Op op, int free_vars, std::vector<Term> args, DType type = DType::kF32) {
    return Add({.op = op, .type = type, .free_vars = free_vars, .args = std::move(args)});
  }

  // sum of `body` over ranges 0..extents; the bound variables follow the free ones.
  NodeId Sum(int free_vars, Term body, const std::vector<int64_t>& extents,
             DType type = DType::kF32) {
    Node node{.op = Op::kReduce, .type = type, .free_vars = free_vars, .args = {body}};
    node.accumulator = type;
    for (int64_t extent : extents) node.bound.push_back({Integer(0), Integer(extent)});
    return Add(node);
  }

  void Define(int output, Term definition) {
    graph.tensors[output].definition = std::move(definition);
    graph.order.push_back(output);
  }

  Workload Build() const {
    Workload workload;
    workload.graph = graph;
    return workload;
  }

  Graph graph;

 private:
  NodeId Add(Node node) {
    graph.nodes.push_back(std::move(node));
    return static_cast<NodeId>(graph.nodes.size()) - 1;
  }
};

}  // namespace kiln::compiler
