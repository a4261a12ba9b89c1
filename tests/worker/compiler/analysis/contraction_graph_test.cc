// SPDX-License-Identifier: Apache-2.0
// Matching on graphs made by hand; contraction_test.cc goes through program text.
#include <array>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/worker/compiler/analysis/graph_builder.h"
#include "worker/compiler/analysis/contraction.h"

namespace kiln::compiler {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// C[i,j] = sum(A[i,k] * B[k,j]) with the given strides; the builder is returned for more.
struct Product {
  GraphBuilder builder;
  int a, b, bias, c;
  NodeId sum;
};

Product MakeProduct(int64_t m, int64_t n, int64_t k, const std::vector<int64_t>& a_strides = {},
                    const std::vector<int64_t>& b_strides = {},
                    const std::vector<int64_t>& c_strides = {}) {
  Product p;
  p.a = p.builder.AddTensor(TensorKind::kInput, "A", {m, k}, a_strides);
  p.b = p.builder.AddTensor(TensorKind::kConstant, "B", {k, n}, b_strides);
  p.bias = p.builder.AddTensor(TensorKind::kInput, "bias", {n});
  p.c = p.builder.AddTensor(TensorKind::kOutput, "C", {m, n}, c_strides);
  NodeId read_a = p.builder.Read(p.a), read_b = p.builder.Read(p.b);
  NodeId product = p.builder.Apply(Op::kMul, 3, {{read_a, {0, 1}}, {read_b, {1, 2}}});
  p.sum = p.builder.Sum(2, {product, {0, 2, 1}}, {k});
  p.builder.Define(p.c, {p.sum, {0, 1}});
  return p;
}

TEST(ContractionGraph, MatchesAMatrixProduct) {
  Product p = MakeProduct(5, 7, 3);
  auto form = MatchContraction(p.builder.Build());
  ASSERT_TRUE(form.ok()) << form.status();
  EXPECT_EQ(form->a, p.a);
  EXPECT_EQ(form->b, p.b);
  EXPECT_TRUE(form->trivial_epilogue);
  EXPECT_TRUE(form->b_constant);
  EXPECT_FALSE(form->a_constant);
  ASSERT_EQ(form->m.size(), 1u);
  ASSERT_EQ(form->n.size(), 1u);
  ASSERT_EQ(form->k.size(), 1u);
  EXPECT_EQ(form->M(), 5);
  EXPECT_EQ(form->N(), 7);
  EXPECT_EQ(form->K(), 3);
  EXPECT_EQ(form->m[0].a, 3);
  EXPECT_EQ(form->m[0].c, 7);
  EXPECT_EQ(form->n[0].b, 1);
  EXPECT_EQ(form->n[0].c, 1);
  EXPECT_EQ(form->k[0].a, 1);
  EXPECT_EQ(form->k[0].b, 7);
}

TEST(ContractionGraph, TurnsATransposedOutputRound) {
  Product p = MakeProduct(5, 7, 3, {}, {}, {1, 5});
  auto form = MatchContraction(p.builder.Build());
  ASSERT_TRUE(form.ok()) << form.status();
  EXPECT_EQ(form->a, p.b);
  EXPECT_EQ(form->b, p.a);
  EXPECT_EQ(form->M(), 7);
  EXPECT_EQ(form->N(), 5);
  EXPECT_EQ(form->n[0].c, 1);
  EXPECT_EQ(form->n[0].b, 3);
}

TEST(ContractionGraph, KeepsEmptyExtents) {
  for (auto [m, n, k] : {std::array{0, 7, 3}, {5, 0, 3}, {5, 7, 0}, {0, 0, 0}}) {
    Product p = MakeProduct(m, n, k);
    auto form = MatchContraction(p.builder.Build());
    ASSERT_TRUE(form.ok()) << form.status();
    EXPECT_EQ(form->M() * form->N(), m * n);
    EXPECT_EQ(form->K(), k);
  }
}

TEST(ContractionGraph, DropsAxesOfExtentOne) {
  Product p = MakeProduct(1, 1, 1);
  auto form = MatchContraction(p.builder.Build());
  ASSERT_TRUE(form.ok()) << form.status();
  EXPECT_TRUE(form->m.empty() && form->n.empty() && form->k.empty() && form->batch.empty());
  EXPECT_EQ(form->M() * form->N() * form->K() * form->Batch(), 1);
}

TEST(ContractionGraph, ListsEpilogueReads) {
  Product p = MakeProduct(5, 7, 3);
  NodeId read = p.builder.Read(p.bias);
  NodeId add = p.builder.Apply(Op::kAdd, 2, {{p.sum, {0, 1}}, {read, {1}}});
  NodeId relu = p.builder.Apply(Op::kRelu, 2, {{add, {0, 1}}});
  p.builder.graph.tensors[p.c].definition = {relu, {0, 1}};
  auto form = MatchContraction(p.builder.Build());
  ASSERT_TRUE(form.ok()) << form.status();
  EXPECT_FALSE(form->trivial_epilogue);
  EXPECT_EQ(form->sum, p.sum);
  ASSERT_EQ(form->operands.size(), 1u);
  EXPECT_EQ(form->operands[0].tensor, p.bias);
  EXPECT_EQ(form->operands[0].access, (Term{read, {1}}));
  EXPECT_THAT(form->operands[0].m, ElementsAre(0));
  EXPECT_THAT(form->operands[0].n, ElementsAre(1));
}

TEST(ContractionGraph, RefusesASumAppliedInTwoWays) {
  Product p = MakeProduct(5, 5, 3);
  NodeId add = p.builder.Apply(Op::kAdd, 2, {{p.sum, {0, 1}}, {p.sum, {1, 0}}});
  p.builder.graph.tensors[p.c].definition = {add, {0, 1}};
  auto form = MatchContraction(p.builder.Build());
  EXPECT_EQ(form.status().code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(std::string(form.status().message()), HasSubstr("more than one reduction"));
}

TEST(ContractionGraph, AnswersAnEpilogueOfExponentialTreeSizeAtOnce) {
  Product p = MakeProduct(5, 7, 3);
  NodeId node = p.sum;
  for (int i = 0; i < 200; ++i)
    node = p.builder.Apply(Op::kAdd, 2, {{node, {0, 1}}, {node, {0, 1}}});
  p.builder.graph.tensors[p.c].definition = {node, {0, 1}};
  EXPECT_TRUE(MatchContraction(p.builder.Build()).ok());
}

}  // namespace
}  // namespace kiln::compiler
