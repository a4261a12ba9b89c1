// SPDX-License-Identifier: Apache-2.0
// Each limit of LANGUAGE.md section 8 and the message of its own; what is just below is accepted.
#include "proto/contract/language/limits.h"
#include "gmock/gmock.h"
#include "tests/proto/contract/language/programs.h"

namespace kiln::language {
namespace {

using testing::AllOf;
using testing::HasSubstr;

std::string Repeat(const std::string& text, int times) {
  std::string out;
  for (int i = 0; i < times; ++i) out += text;
  return out;
}

TEST(Limits, TextOf64KiB) {
  std::string program = OneStatement("y = x;");
  std::string full = program + std::string(kMaxTextBytes - program.size(), ' ');
  Check(full, "N=1");
  EXPECT_THAT(Refusal(full + " ", "N=1"), AllOf(HasSubstr("65537 bytes"), HasSubstr("65536")));
}

TEST(Limits, Statements) {
  auto program = [](int temporaries) {
    std::string statements;
    for (int i = 0; i < temporaries; ++i) statements += "t" + std::to_string(i) + " = x; ";
    return OneStatement(statements + "y = x;");  // with input and output three more
  };
  Check(program(kMaxStatements - 3), "N=1");
  EXPECT_THAT(Refusal(program(kMaxStatements - 2), "N=1"), HasSubstr("more than 256 statements"));
}

TEST(Limits, Nodes) {
  // Each `+ k*x` of another k adds two nodes that operate and one literal.
  auto program = [](int terms) {
    std::string sum = "x";
    for (int i = 0; i < terms; ++i) sum += "+" + std::to_string(i + 2) + "*x";
    return OneStatement("y = " + sum + ";");
  };
  Check(program(1300), "N=1");
  EXPECT_THAT(Refusal(program(1400), "N=1"),
              AllOf(HasSubstr("nodes, more than 4096"), HasSubstr("split the operator")));
  // Equal nodes are one.
  Check(OneStatement("y = x" + Repeat("+x*x", 4000) + ";"), "N=1");
}

TEST(Limits, NestingOf64) {
  auto parentheses = [](int n) {
    return OneStatement("y = " + Repeat("(", n) + "x" + Repeat(")", n) + ";");
  };
  Check(parentheses(kMaxNesting - 1), "N=1");
  EXPECT_THAT(Refusal(parentheses(kMaxNesting), "N=1"),
              AllOf(HasSubstr("deeper than 64"), HasSubstr("a name")));
}

TEST(Limits, NestingOfEverySortIsCaught) {
  constexpr int kDeep = 4000;
  for (std::string open :
       {"(", "-", "!", "exp(", "max(1, ", "sum(k in 0..3: ", "x[", "x^", "1?1:", "1?", "cast(",
        "softmax(", "x[0] else ", "x[0] else -", "select(1,", "2^-"}) {
    EXPECT_THAT(Refusal(OneStatement("y = " + Repeat(open, kDeep)), "N=1"),
                HasSubstr("deeper than 64"))
        << open;
  }
  Check(OneStatement("y = x" + Repeat("-x", kDeep) + ";"), "N=1");
}

TEST(Limits, Rank) {
  auto program = [](int rank) {
    return "operator F() { output y[1" + Repeat(",1", rank - 1) + "]; output z[] = 1; y[i" + [&] {
      std::string axes;
      for (int i = 1; i < rank; ++i) axes += ",i" + std::to_string(i);
      return axes;
    }() + "] = 2; }";
  };
  Check(program(kMaxRank), "");
  EXPECT_THAT(Refusal(program(kMaxRank + 1), ""), HasSubstr("more than 8 axes"));
  EXPECT_THAT(Refusal("operator F(A,B,C,D,E,G,H,I,J) { input p[A,B,C,D,E], q[G,H,I,J]; output y[]; "
                      "t = p*q; y = sum(t over [A,B,C,D,E,G,H,I,J]); }",
                      "A=1,B=1,C=1,D=1,E=1,G=1,H=1,I=1,J=1"),
              HasSubstr("would have more than 8 axes"));
}

TEST(Limits, Dims) {
  auto head = [](int dims) {
    std::string names;
    for (int i = 0; i < dims; ++i) names += (i > 0 ? ",D" : "D") + std::to_string(i);
    return names;
  };
  auto values = [](int dims) {
    std::string text;
    for (int i = 0; i < dims; ++i) text += (i > 0 ? ",D" : "D") + std::to_string(i) + "=1";
    return text;
  };
  Check("operator F(" + head(kMaxDims) + ") { output y[]; y = 1; }", values(kMaxDims));
  EXPECT_THAT(Refusal("operator F(" + head(kMaxDims + 1) + ") { output y[]; y = 1; }",
                      values(kMaxDims + 1)),
              HasSubstr("more than 32 dims"));
}

TEST(Limits, Tensors) {
  auto program = [](int inputs) {
    std::string names = "a0[]";
    for (int i = 1; i < inputs; ++i) names += ",a" + std::to_string(i) + "[]";
    return "operator F() { input " + names + "; output y[]; y = a0; }";
  };
  Check(program(kMaxTensors - 1), "");
  EXPECT_THAT(Refusal(program(kMaxTensors), ""), HasSubstr("more than 64 tensors"));
  std::string chain = "t0 : f16 = x; ";
  for (int i = 1; i < kMaxTensors; ++i)
    chain += "t" + std::to_string(i) + " : f16 = t" + std::to_string(i - 1) + "; ";
  EXPECT_THAT(Refusal(OneStatement(chain + "y = t63;"), "N=1"),
              HasSubstr("temporaries that stay counted"));
}

TEST(Limits, VariablesOfAStatement) {
  auto program = [](int variables) {
    std::string product = "x[a0]";
    for (int i = 1; i < variables; ++i) product += "*x[a" + std::to_string(i) + "]";
    return "operator F(N) { input x[N]; output y[]; y = sum(" + product + "); }";
  };
  Check(program(kMaxVariables), "N=2");
  EXPECT_THAT(Refusal(program(kMaxVariables + 1), "N=2"), HasSubstr("more than 64 variables"));
}

TEST(Limits, Extents) {
  Check(OneStatement("y = x;"), "N=1099511627775");
  EXPECT_THAT(Refusal(OneStatement("y = x;"), "N=1099511627776"),
              AllOf(HasSubstr("dims.N"), HasSubstr("1099511627776"), HasSubstr("2^40-1")));
  EXPECT_THAT(Refusal(OneStatement("y = x;"), "N=-1"),
              AllOf(HasSubstr("dims.N"), HasSubstr("negative")));
  EXPECT_THAT(Refusal(OneStatement("y = x;"), "N=5..4"), HasSubstr("an empty range"));
  EXPECT_THAT(Refusal("operator F(N) { input x[N*N*N*N]; output y[]; y = x[0]; }", "N=1000000"),
              HasSubstr("extents are below 2^40"));
}

TEST(Limits, AddressRange) {
  // 2^39 rows of 2^21 f32 are exactly 2^62 bytes; x, y and that is the limit of all together.
  EXPECT_THAT(Refusal("operator F(N, M) { input x[N,M]; output y[]; y = x[0,0]; }",
                      "N=549755813888,M=2097153"),
              AllOf(HasSubstr("x would span"), HasSubstr("dims"), HasSubstr("2^62")));
  Check("operator F(N, M) { input x[N,M]; output y[]; y = x[0,0]; }", "N=549755813888,M=2097151");
  EXPECT_THAT(
      Refusal("operator F(N) { input x[N,N,N,N,N,N,N,N]; output y[]; y = 1; }", "N=1099511627775"),
      HasSubstr("x would span"));
  EXPECT_THAT(Refusal("operator F(N, M) { input x[N,M], z[N,M]; output y[]; y = x[0,0]; }",
                      "N=549755813888,M=2097151"),
              HasSubstr("the tensors would span"));
  WorkloadSpec spec = MakeSpec(OneStatement("y = x;"), "N=3");
  spec.strides["x"] = {int64_t{1} << 61};
  EXPECT_THAT(Refusal(spec), AllOf(HasSubstr("strides.x"), HasSubstr("too large")));
}

}  // namespace
}  // namespace kiln::language
