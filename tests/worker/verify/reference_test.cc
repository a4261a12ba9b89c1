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

// Written out from erf in one type, gelu is 0 from -5 on; e^-x leaves f32's range where sigmoid and
// silu are numbers yet. The bounds are of what is promised, not of such code.
TEST(Reference, AllowsFunctionsFourUnitsInTheLastPlace) {
  std::vector<Workload> workloads;
  for (const char* types : {"x=f32,y=f32", "x=f64,y=f64"}) {
    for (const char* function : {"gelu", "silu", "sigmoid", "exp", "tanh"}) {
      const std::string text =
          absl::StrCat("operator F(N) { input x[N]; output y[N] = ", function, "(x[i]); }");
      auto workload = compiler::Check({function, text.c_str(), "N=601", types});
      ASSERT_TRUE(workload.ok()) << workload.status();
      workloads.push_back(*workload);
    }
  }
  const std::vector<Reference> references = CompileReferences(workloads);
  ASSERT_EQ(references.size(), workloads.size());
  for (size_t w = 0; w < workloads.size(); ++w) {
    const DType type = workloads[w].graph.tensors[0].type;
    compiler::HostTensor x =
        compiler::MakeHostTensor(workloads[w].graph, workloads[w].graph.tensors[0], 0);
    for (int i = 0; i < 601; ++i)
      compiler::StoreDouble(x, i, (i - 300) * (type == DType::kF32 ? 0.3 : 2.4));
    std::vector<double> values(601), errors(601);
    const void* inputs[] = {x.bytes.data()};
    double* value = values.data();
    double* error = errors.data();
    ASSERT_EQ(references[w](inputs, &value, &error, 1), 0);
    const double unit = type == DType::kF32 ? 0x1p-24 : 0x1p-53;
    const double least = type == DType::kF32 ? 0x1p-149 : 0x1p-1074;
    for (int i = 0; i < 601; ++i) {
      if (!std::isfinite(errors[i])) continue;  // overflows
      EXPECT_LE(errors[i], 8 * unit * std::fabs(values[i]) + 4 * least)
          << w << " at " << compiler::LoadAsDouble(x, i);
    }
    EXPECT_NE(values[290], 0) << w;
  }
}

}  // namespace
}  // namespace kiln::verify
