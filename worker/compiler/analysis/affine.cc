// SPDX-License-Identifier: Apache-2.0
#include "worker/compiler/analysis/affine.h"

namespace kiln::compiler {
namespace {

bool AddTo(int64_t& sum, int64_t value) { return !__builtin_add_overflow(sum, value, &sum); }

// a + factor * b, or nothing on overflow.
std::optional<Affine> Combine(const Affine& a, int64_t factor, const Affine& b) {
  Affine result = a;
  int64_t product = 0;
  if (__builtin_mul_overflow(b.constant, factor, &product)) return std::nullopt;
  if (!AddTo(result.constant, product)) return std::nullopt;
  for (size_t i = 0; i < b.coefficients.size(); ++i) {
    if (__builtin_mul_overflow(b.coefficients[i], factor, &product)) return std::nullopt;
    if (!AddTo(result.coefficients[i], product)) return std::nullopt;
  }
  return result;
}

Affine Constant(int64_t value, int variables) {
  return Affine{value, std::vector<int64_t>(variables, 0)};
}

int64_t FloorDivide(int64_t a, int64_t b) {
  int64_t quotient = a / b;
  return a % b != 0 && (a % b < 0) != (b < 0) ? quotient - 1 : quotient;
}

std::optional<Affine> Divide(Op op, const Affine& a, const Affine& b, int variables) {
  if (!b.is_constant() || b.constant <= 0) return std::nullopt;
  if (b.constant == 1) return op == Op::kFloorDiv ? a : Constant(0, variables);
  if (!a.is_constant()) return std::nullopt;
  int64_t quotient = FloorDivide(a.constant, b.constant);
  return Constant(op == Op::kFloorDiv ? quotient : a.constant - quotient * b.constant, variables);
}

}  // namespace

bool Affine::is_constant() const { return variables_used() == 0; }

int Affine::variables_used() const {
  int used = 0;
  for (int64_t coefficient : coefficients) used += coefficient != 0;
  return used;
}

AffineTable::AffineTable(const Graph& graph) {
  nodes_.reserve(graph.nodes.size());
  for (const Node& node : graph.nodes) nodes_.push_back(Compute(node));
}

std::optional<Affine> AffineTable::Compute(const Node& node) const {
  const int variables = node.free_vars;
  if (node.type != DType::kI64 && node.type != DType::kI32) return std::nullopt;
  if (node.op == Op::kLiteral) return Constant(node.integer, variables);
  if (node.op == Op::kVar) return Affine{0, {1}};
  if (node.op != Op::kNeg && node.op != Op::kAdd && node.op != Op::kSub && node.op != Op::kMul &&
      node.op != Op::kFloorDiv && node.op != Op::kFloorMod) {
    return std::nullopt;
  }
  std::optional<Affine> a = OfTerm(node.args[0], variables);
  if (!a) return std::nullopt;
  const Affine zero = Constant(0, variables);
  if (node.op == Op::kNeg) return Combine(zero, -1, *a);
  std::optional<Affine> b = OfTerm(node.args[1], variables);
  if (!b) return std::nullopt;
  switch (node.op) {
    case Op::kAdd:
      return Combine(*a, 1, *b);
    case Op::kSub:
      return Combine(*a, -1, *b);
    case Op::kMul:
      if (b->is_constant()) return Combine(zero, b->constant, *a);
      if (a->is_constant()) return Combine(zero, a->constant, *b);
      return std::nullopt;
    default:
      return Divide(node.op, *a, *b, variables);
  }
}

std::optional<Affine> AffineTable::OfTerm(const Term& term, int variables,
                                          const std::vector<int>* map) const {
  const std::optional<Affine>& own = nodes_[term.node];
  if (!own) return std::nullopt;
  Affine result = Constant(own->constant, variables);
  for (size_t i = 0; i < own->coefficients.size(); ++i) {
    int variable = map != nullptr ? (*map)[term.vars[i]] : term.vars[i];
    if (!AddTo(result.coefficients[variable], own->coefficients[i])) return std::nullopt;
  }
  return result;
}

std::optional<int64_t> AffineTable::ConstantOf(const Term& term) const {
  const std::optional<Affine>& own = nodes_[term.node];
  if (!own || !own->is_constant()) return std::nullopt;
  return own->constant;
}

}  // namespace kiln::compiler
