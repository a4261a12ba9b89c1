// SPDX-License-Identifier: Apache-2.0
// The compiled reference against the interpreter: on every program and every set of inputs, the
// interpreter in f64 agrees to rounding, and the interpreter as the language specifies it is judged
// right.
#include <cmath>

#include <gtest/gtest.h>

#include "tests/worker/compiler/analysis/programs.h"
#include "tests/worker/verify/compiled_reference.h"
#include "worker/compiler/analysis/interpreter.h"
#include "worker/verify/verdict.h"

namespace kiln::verify {
namespace {

using compiler::Arithmetic;
using compiler::Programs;

class ReferenceSuite : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    for (const compiler::Program& program : Programs()) {
      auto workload = compiler::Check(program);
      ASSERT_TRUE(workload.ok()) << program.name << ": " << workload.status();
      workloads().push_back(*workload);
    }
    references() = CompileReferences(workloads());
    ASSERT_EQ(references().size(), workloads().size());
  }
  static std::vector<Workload>& workloads() {
    static std::vector<Workload> all;
    return all;
  }
  static std::vector<Reference>& references() {
    static std::vector<Reference> all;
    return all;
  }
};

TEST_F(ReferenceSuite, AgreesWithTheInterpreterOnEveryProgramAndSet) {
  for (size_t i = 0; i < workloads().size(); ++i) {
    const Workload& workload = workloads()[i];
    for (int threads : {1, 3}) {
      ReferenceCache cache(workload, references()[i], {.seed = 7, .threads = threads});
      for (SetKind kind : SetKinds(workload)) {
        SCOPED_TRACE(absl::StrCat(Programs()[i].name, " ", Print(kind)));
        auto set = cache.Get(kind);
        ASSERT_TRUE(set.ok()) << set.status();
        for (Arithmetic arithmetic : {Arithmetic::kDouble, Arithmetic::kAsSpecified}) {
          auto outputs = compiler::Interpret(workload, (*set)->inputs, arithmetic);
          ASSERT_TRUE(outputs.ok()) << outputs.status();
          ASSERT_EQ(outputs->size(), (*set)->outputs.size());
          for (size_t o = 0; o < outputs->size(); ++o) {
            Expected expected = (*set)->outputs[o];
            if (arithmetic == Arithmetic::kDouble) {
              // Both computed in f64: what is allowed shrinks to that type's roundoff.
              for (double& error : expected.errors) {
                if (std::isfinite(error)) error *= 0x1p-20;
              }
            }
            const Verdict verdict =
                Judge("output", (*outputs)[o], expected, (*set)->exact[o], workload.policy);
            EXPECT_TRUE(verdict.right)
                << o << (arithmetic == Arithmetic::kDouble ? " f64 " : " f32 ") << verdict.reason;
          }
        }
      }
    }
  }
}

// Bounds that allow anything would make every verdict right.
TEST_F(ReferenceSuite, BoundsErrorsTightlyOnRandomInputs) {
  for (size_t i = 0; i < workloads().size(); ++i) {
    SCOPED_TRACE(Programs()[i].name);
    ReferenceCache cache(workloads()[i], references()[i], {.seed = 7, .threads = 1});
    auto set = cache.Get(SetKind::kRandom);
    ASSERT_TRUE(set.ok()) << set.status();
    // Narrow accumulators and stored eights are legitimately wide.
    bool narrow = !workloads()[i].policy.accumulate.empty();
    for (const Tensor& tensor : workloads()[i].graph.tensors) narrow |= Bits(tensor.type) == 8;
    for (const Expected& output : (*set)->outputs) {
      size_t unbounded = 0, wide = 0;
      for (size_t e = 0; e < output.values.size(); ++e) {
        unbounded += !std::isfinite(output.errors[e]);
        wide += output.errors[e] > 2e-2 * (1 + std::fabs(output.values[e]));
      }
      EXPECT_LE(unbounded * 10, output.values.size());
      if (!narrow) {
        EXPECT_LE(wide * 10, output.values.size() + 9);
      }
    }
  }
}

}  // namespace
}  // namespace kiln::verify
