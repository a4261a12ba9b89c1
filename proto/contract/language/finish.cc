// SPDX-License-Identifier: Apache-2.0
#include "proto/contract/language/finish.h"

#include <map>

#include "absl/strings/str_cat.h"
#include "proto/contract/language/limits.h"

namespace kiln::language {
namespace {

class Finisher {
 public:
  Finisher(Scope* scope, const Built& built)
      : scope_(*scope), built_(built), numbers_(built.pool.nodes().size(), -1) {}

  Graph Run() {
    graph_.name = std::string(scope_.program.name.name.data(), scope_.program.name.name.size());
    for (const Dim& dim : scope_.dims) {
      if (dim.dynamic >= 0) graph_.dims.push_back({dim.name, dim.range.lo, dim.range.hi});
    }
    for (const Definition& definition : built_.definitions)
      definitions_[definition.tensor] = definition.value;
    for (TensorKind kind : {TensorKind::kInput, TensorKind::kOutput}) AddDeclared(kind);
    for (size_t tensor = 0; tensor < scope_.tensors.size(); ++tensor) {
      if (scope_.tensors[tensor].kind == TensorKind::kOutput)
        Visit({true, static_cast<int>(tensor)});
    }
    Renumber();
    CheckSize();
    return std::move(graph_);
  }

 private:
  struct Item {
    bool is_tensor;
    int id;
  };

  // Inputs and constants together in the order of declaration, or the outputs.
  void AddDeclared(TensorKind kind) {
    for (size_t i = 0; i < scope_.tensors.size(); ++i) {
      const TensorSymbol& tensor = scope_.tensors[i];
      bool output = tensor.kind == TensorKind::kOutput;
      if (tensor.kind == TensorKind::kTemporary || output != (kind == TensorKind::kOutput))
        continue;
      for (const Applied& extent : built_.shapes[i]) Visit({false, extent.node});
      AddTensor(static_cast<int>(i));
    }
  }

  void AddTensor(int symbol) {
    const TensorSymbol& from = scope_.tensors[symbol];
    Tensor tensor;
    tensor.kind = from.kind;
    tensor.name = from.name;
    tensor.type = from.type ? *from.type : built_.pool.at(definitions_[symbol].node).type;
    tensor.axis_names = from.axis_names;
    tensor_numbers_[symbol] = static_cast<int>(graph_.tensors.size());
    symbols_.push_back(symbol);
    graph_.tensors.push_back(std::move(tensor));
  }

  std::vector<Item> ChildrenOf(Item item) const {
    std::vector<Item> children;
    if (item.is_tensor) {
      for (const Applied& extent : built_.shapes[item.id]) children.push_back({false, extent.node});
      children.push_back({false, definitions_.at(item.id).node});
      return children;
    }
    const Node& node = built_.pool.at(item.id);
    if (node.op == Op::kRead && definitions_.count(node.index) > 0)
      children.push_back({true, node.index});
    for (const Term& arg : node.args) children.push_back({false, arg.node});
    for (const Range& range : node.bound) {
      children.push_back({false, range.lo.node});
      children.push_back({false, range.hi.node});
    }
    return children;
  }

  bool IsDone(Item item) const {
    return item.is_tensor ? done_tensors_.count(item.id) > 0 : numbers_[item.id] >= 0;
  }

  void Finish(Item item) {
    if (IsDone(item)) return;
    if (!item.is_tensor) {
      numbers_[item.id] = static_cast<int>(order_.size());
      order_.push_back(item.id);
      return;
    }
    done_tensors_[item.id] = true;
    if (scope_.tensors[item.id].kind == TensorKind::kTemporary) AddTensor(item.id);
    graph_.order.push_back(tensor_numbers_.at(item.id));
  }

  // Depth first with a stack of its own: chains of nodes are longer than the machine's stack should
  // be trusted with.
  void Visit(Item root) {
    struct Frame {
      Item item;
      std::vector<Item> children;
      size_t next = 0;
    };
    if (IsDone(root)) return;
    std::vector<Frame> stack{{root, ChildrenOf(root)}};
    while (!stack.empty()) {
      Frame& frame = stack.back();
      if (frame.next == frame.children.size()) {
        Finish(frame.item);
        stack.pop_back();
        continue;
      }
      Item child = frame.children[frame.next++];
      if (!IsDone(child)) stack.push_back({child, ChildrenOf(child)});
    }
  }

  Term Renumbered(Term term) const {
    term.node = numbers_[term.node];
    return term;
  }

  void Renumber() {
    for (NodeId id : order_) {
      Node node = built_.pool.at(id);
      for (Term& arg : node.args) arg = Renumbered(arg);
      for (Range& range : node.bound) range = {Renumbered(range.lo), Renumbered(range.hi)};
      if (node.op == Op::kRead) node.index = tensor_numbers_.at(node.index);
      graph_.nodes.push_back(std::move(node));
    }
    for (size_t i = 0; i < symbols_.size(); ++i) {
      Tensor& tensor = graph_.tensors[i];
      for (const Applied& extent : built_.shapes[symbols_[i]])
        tensor.shape.push_back({numbers_[extent.node], {}});
      auto definition = definitions_.find(symbols_[i]);
      if (definition != definitions_.end()) tensor.definition = Renumbered(definition->second);
    }
  }

  void CheckSize() {
    size_t offset = scope_.program.name.offset;
    if (graph_.nodes.size() > kMaxNodes) {
      scope_.errors.Add(
          offset,
          absl::StrCat("the program has ", graph_.nodes.size(), " nodes, more than ", kMaxNodes),
          "split the operator in two");
    }
    if (graph_.tensors.size() > kMaxTensors) {
      scope_.errors.Add(
          offset,
          absl::StrCat("more than ", kMaxTensors, " tensors, temporaries that stay counted"),
          "split the operator in two");
    }
  }

  Scope& scope_;
  const Built& built_;
  Graph graph_;
  std::map<int, Term> definitions_;  // by symbol
  std::map<int, bool> done_tensors_;
  std::map<int, int> tensor_numbers_;  // symbol -> place in the graph
  std::vector<int> symbols_;           // place in the graph -> symbol
  std::vector<int> numbers_;           // node of the pool -> place in the graph
  std::vector<NodeId> order_;
};

}  // namespace

Graph FinishGraph(Scope* scope, const Built& built) { return Finisher(scope, built).Run(); }

}  // namespace kiln::language
