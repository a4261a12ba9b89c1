// SPDX-License-Identifier: Apache-2.0
#include "proto/contract/language/node_pool.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace kiln::language {
namespace {

// A node's content as bytes, for finding equal ones.
class Key {
 public:
  explicit Key(const Node& node) {
    Put(static_cast<int>(node.op), static_cast<int>(node.type), node.free_vars, node.index,
        node.has_else, static_cast<int>(node.storage), static_cast<int>(node.reduce),
        static_cast<int>(node.accumulator));
    int64_t bits = 0;
    static_assert(sizeof bits == sizeof node.number);
    std::memcpy(&bits, &node.number, sizeof bits);  // -0 is not 0 here
    Put(bits, node.integer);
    Put(node.args.size(), node.bound.size(), node.at.size());
    for (const Term& term : node.args) PutTerm(term);
    for (const Range& range : node.bound) {
      PutTerm(range.lo);
      PutTerm(range.hi);
    }
    for (int at : node.at) Put(at);
  }
  std::string Take() { return std::move(bytes_); }

 private:
  template <typename... Numbers>
  void Put(Numbers... numbers) {
    for (int64_t number : {static_cast<int64_t>(numbers)...}) {
      bytes_.append(reinterpret_cast<const char*>(&number), sizeof number);
    }
  }
  void PutTerm(const Term& term) {
    Put(term.node, term.vars.size());
    for (int var : term.vars) Put(var);
  }
  std::string bytes_;
};

int IndexOf(const std::vector<VarId>& vars, VarId var) {
  auto it = std::find(vars.begin(), vars.end(), var);
  return it == vars.end() ? -1 : static_cast<int>(it - vars.begin());
}

void AddNew(const std::vector<VarId>& from, const std::vector<VarId>& except,
            std::vector<VarId>* to) {
  for (VarId var : from) {
    if (IndexOf(except, var) < 0 && IndexOf(*to, var) < 0) to->push_back(var);
  }
}

Term TermOf(const Applied& applied, const std::vector<VarId>& order) {
  Term term{applied.node, {}};
  for (VarId var : applied.vars) term.vars.push_back(IndexOf(order, var));
  return term;
}

// The order of first appearance in the body; a range comes after those whose variables its bounds
// use. Variables that the body does not use keep their places at the end.
std::vector<AppliedRange> InCanonicalOrder(const Applied& body, std::vector<AppliedRange> ranges) {
  std::vector<VarId> bound;
  for (const AppliedRange& range : ranges) bound.push_back(range.var);
  std::stable_sort(ranges.begin(), ranges.end(), [&](const AppliedRange& a, const AppliedRange& b) {
    unsigned place_a = IndexOf(body.vars, a.var),
             place_b = IndexOf(body.vars, b.var);  // -1 is the largest
    return place_a < place_b;
  });
  std::vector<AppliedRange> ordered;
  std::vector<VarId> placed;
  auto ready = [&](const AppliedRange& range) {
    for (const Applied* end : {&range.lo, &range.hi}) {
      for (VarId var : end->vars) {
        if (IndexOf(bound, var) >= 0 && IndexOf(placed, var) < 0) return false;
      }
    }
    return true;
  };
  while (!ranges.empty()) {
    auto next = std::find_if(ranges.begin(), ranges.end(), ready);
    if (next == ranges.end())
      next = ranges.begin();  // cannot be: bounds use variables that were bound before
    placed.push_back(next->var);
    ordered.push_back(std::move(*next));
    ranges.erase(next);
  }
  return ordered;
}

}  // namespace

NodeId NodePool::Intern(Node node) {
  auto [it, added] = known_.try_emplace(Key(node).Take(), static_cast<NodeId>(nodes_.size()));
  if (added) nodes_.push_back(std::move(node));
  return it->second;
}

Applied NodePool::Literal(DType type, double number) {
  Node node;
  node.op = Op::kLiteral;
  node.type = type;
  node.number = type == DType::kF32 ? static_cast<double>(static_cast<float>(number)) : number;
  if (std::isnan(number)) node.number = std::numeric_limits<double>::quiet_NaN();
  return {Intern(std::move(node)), {}};
}

Applied NodePool::Integer(DType type, int64_t value) {
  Node node;
  node.op = Op::kLiteral;
  node.type = type;
  node.integer = value;
  return {Intern(std::move(node)), {}};
}

Applied NodePool::Dim(int dynamic_dim) {
  Node node;
  node.op = Op::kDim;
  node.type = DType::kI64;
  node.index = dynamic_dim;
  return {Intern(std::move(node)), {}};
}

Applied NodePool::Var(VarId var) {
  Node node;
  node.op = Op::kVar;
  node.type = DType::kI64;
  node.free_vars = 1;
  return {Intern(std::move(node)), {var}};
}

Applied NodePool::Make(Node node, const std::vector<Applied>& args) {
  Applied result;
  for (const Applied& arg : args) AddNew(arg.vars, {}, &result.vars);
  for (const Applied& arg : args) node.args.push_back(TermOf(arg, result.vars));
  node.free_vars = static_cast<int>(result.vars.size());
  result.node = Intern(std::move(node));
  return result;
}

Applied NodePool::Bind(Node node, const Applied& body, std::vector<AppliedRange> ranges) {
  ranges = InCanonicalOrder(body, std::move(ranges));
  std::vector<VarId> bound;
  for (const AppliedRange& range : ranges) bound.push_back(range.var);
  Applied result;
  AddNew(body.vars, bound, &result.vars);
  if (node.op == Op::kSoftmax) {
    for (VarId var : bound) {
      node.at.push_back(static_cast<int>(result.vars.size()));
      result.vars.push_back(var);
    }
  }
  for (const AppliedRange& range : ranges) {
    AddNew(range.lo.vars, bound, &result.vars);
    AddNew(range.hi.vars, bound, &result.vars);
  }
  // Inside, the bound ones follow the free ones. A softmax's own are bound inside and free outside:
  // those inside must be the ones that the body means, hence the free ones get a name that occurs
  // nowhere.
  std::vector<VarId> inside = result.vars;
  for (int at : node.at) inside[at] = -1;
  inside.insert(inside.end(), bound.begin(), bound.end());
  node.args = {TermOf(body, inside)};
  for (const AppliedRange& range : ranges) {
    node.bound.push_back({TermOf(range.lo, inside), TermOf(range.hi, inside)});
  }
  node.free_vars = static_cast<int>(result.vars.size());
  result.node = Intern(std::move(node));
  return result;
}

}  // namespace kiln::language
