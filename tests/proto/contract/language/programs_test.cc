// SPDX-License-Identifier: Apache-2.0
// The programs of LANGUAGE.md section 1, letter for letter, and what their graphs say.
#include "tests/proto/contract/language/programs.h"
#include "gmock/gmock.h"

namespace kiln::language {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

constexpr char kCustomActivation[] = R"(operator CustomActivation(B, C, H, W) {
  input x[B,C,H,W], gamma[C], beta[C];
  output y[B,C,H,W];

  // Swish
  tmp1 = x * sigmoid(x);

  // LayerNorm
  mean = avg(tmp1 over [H,W]);
  var = avg((tmp1 - mean)^2 over [H,W]);
  y = (tmp1 - mean)/sqrt(var + 1e-5) * gamma + beta;
}
)";

constexpr char kConv2d[] = R"(operator Conv2d(N, C, H, W, K, R, S) {          // stride 2, padding 1
  input x[N,C,H,W] : f16;
  constant w[K,C,R,S] : f16;
  output y[N, K, (H+2-R)/2+1, (W+2-S)/2+1] : f16;
  y[n,k,p,q] = sum((x[n, c, 2*p + r - 1, 2*q + s - 1] else 0) * w[k,c,r,s]);
}
)";

constexpr char kMaxPool[] = R"(operator MaxPool(N, C, H, W) {
  input x[N,C,H,W];
  output y[N, C, H/2, W/2];
  y[n,c,p,q] = max(r in 0..3, s in 0..3: x[n, c, 2*p + r - 1, 2*q + s - 1] else -inf);
}
)";

constexpr char kCausalScores[] = R"(operator CausalScores(H, Q, D) {
  input q[H,Q,D] : bf16, k[H,Q,D] : bf16;
  output p[H,Q,Q] : bf16;
  s[h,i,j] = j <= i ? sum(q[h,i,d] * k[h,j,d]) : -inf;
  p[h,i,j] = softmax(s[h,i,j] over [j]);
}
)";

constexpr char kAttention[] = R"(operator Attention(B, H, Q, K, D) {
  input q[B,H,Q,D], k[B,H,K,D], v[B,H,K,D];
  output o[B,H,Q,D];
  s[b,h,i,j] = sum(q[b,h,i,d] * k[b,h,j,d]) * 0.125;
  m = max(s over [K]);
  p = exp(s - m);
  z = sum(p over [K]);
  o[b,h,i,d] = sum(p[b,h,i,j] * v[b,h,j,d]) / z[b,h,i];
}
)";

constexpr char kSpmv[] = R"(operator Spmv(M, N, Z) {
  input ptr[M+1] : i32, col[Z] : i32, val[Z], x[N];
  output y[M];
  y[i] = sum(e in ptr[i]..ptr[i+1]: val[e] * x[col[e]]);
}
)";

struct Example {
  const char* program;
  const char* dims;
};

const Example kExamples[] = {{kMatMul, "M=64,N=32,K=16"},
                             {kCustomActivation, "B=2,C=3,H=4,W=5"},
                             {kConv2d, "N=1,C=3,H=9,W=9,K=4,R=3,S=3"},
                             {kMaxPool, "N=1,C=2,H=8,W=8"},
                             {kCausalScores, "H=2,Q=5,D=4"},
                             {kAttention, "B=1,H=2,Q=3,K=4,D=5"},
                             {kSpmv, "M=3,N=4,Z=5"}};

TEST(Programs, ThoseOfTheLanguageCheck) {
  for (const Example& example : kExamples)
    EXPECT_EQ(Check(example.program, example.dims).signature.size(), 64);
}

TEST(Programs, ThoseOfTheLanguageCheckWithDynamicDims) {
  EXPECT_EQ(Check(kMatMul, "M=1..64,N=32,K=0..16").graph.dims.size(), 2);
  EXPECT_EQ(Check(kCustomActivation, "B=0..2,C=3,H=1..4,W=5").graph.dims.size(), 2);
  EXPECT_EQ(Check(kAttention, "B=1,H=2,Q=3,K=1..4096,D=5").graph.dims.size(), 1);
  EXPECT_EQ(Check(kConv2d, "N=1..8,C=3,H=9..99,W=9,K=4,R=3,S=3").graph.dims.size(), 2);
  EXPECT_EQ(Check(kSpmv, "M=0..3,N=4,Z=0..5").graph.dims.size(), 2);
}

TEST(Programs, MatMulIsReadsAProductAndASum) {
  Workload w = Check(kMatMul, "M=512,N=256,K=128");
  EXPECT_EQ(w.canonical,
            "t0 input f32 [512,128] align 16\n"
            "t1 input f32 [128,256] align 16\n"
            "t2 output f32 [512,256] align 16\n"
            "n0 f32 read t0 v0 v1\n"
            "n1 f32 read t1 v0 v1\n"
            "n2 f32 mul n0(0,1) n1(1,2)\n"
            "n3 f32 sum acc f32 n2(0,2,1) for v2 in 0..128\n"
            "t2 = n3(0,1)\n"
            "policy\n");
  EXPECT_EQ(w.signature, Sha256Hex("kiln/1\n" + w.canonical));
  EXPECT_THAT(w.graph.order, ElementsAre(2));
  EXPECT_THAT(w.graph.tensors[2].definition.vars, ElementsAre(0, 1));
  EXPECT_THAT(w.graph.tensors[2].axis_names, ElementsAre("M", "N"));
  EXPECT_THAT(StaticShape(w.graph, w.graph.tensors[0]), ElementsAre(512, 128));
  EXPECT_THAT(w.graph.tensors[0].strides, ElementsAre(128, 1));
  EXPECT_EQ(SpanElements(w.graph, w.graph.tensors[0]), 512 * 128);
  EXPECT_EQ(FootprintBytes(w.graph), 4 * (512 * 128 + 128 * 256 + 512 * 256));
}

TEST(Programs, NodesComeAfterTheirArgumentsAndUseFewVariables) {
  for (const Example& example : kExamples) {
    Graph graph = Check(example.program, example.dims).graph;
    for (int id = 0; id < static_cast<int>(graph.nodes.size()); ++id) {
      const Node& node = graph.nodes[id];
      int inside = node.free_vars + static_cast<int>(node.bound.size());
      auto check = [&](const Term& term) {
        EXPECT_LT(term.node, id);
        EXPECT_EQ(term.vars.size(), graph.nodes[term.node].free_vars);
        for (int var : term.vars) EXPECT_LT(var, inside);
      };
      for (const Term& arg : node.args) check(arg);
      for (const Range& range : node.bound) {
        check(range.lo);
        check(range.hi);
      }
    }
  }
}

TEST(Programs, TemporariesReadPlainlyAreNames) {
  for (const Tensor& tensor : Check(kAttention, "B=1,H=2,Q=3,K=4,D=5").graph.tensors) {
    EXPECT_NE(tensor.kind, TensorKind::kTemporary);
  }
}

TEST(Programs, TemporariesReadOtherwiseOrTypedAreTensors) {
  std::string blur = R"(operator F(N) { input x[N]; output y[N];
    t[i] = x[i] * 2;
    y[i] = t[i] + (t[i+1] else 0); })";
  Workload w = Check(blur, "N=9");
  ASSERT_EQ(w.graph.tensors.size(), 3);
  EXPECT_EQ(w.graph.tensors[2].kind, TensorKind::kTemporary);
  EXPECT_EQ(w.graph.tensors[2].name, "t");
  EXPECT_THAT(w.graph.order, ElementsAre(2, 1));
  Workload typed = Check(OneStatement("t[i] : f16 = x[i] * 2; y[i] = t[i];"), "N=9");
  EXPECT_EQ(typed.graph.tensors[2].type, DType::kF16);
}

TEST(Programs, ExtentsOfZeroAndOneWork) {
  for (const char* dims : {"M=0,N=4,K=4", "M=4,N=0,K=4", "M=4,N=4,K=0", "M=0,N=0,K=0",
                           "M=1,N=1,K=1", "M=7,N=13,K=31"}) {
    Check(kMatMul, dims);
  }
  EXPECT_EQ(SpanElements(Check(kMatMul, "M=0,N=4,K=4").graph,
                         Check(kMatMul, "M=0,N=4,K=4").graph.tensors[0]),
            0);
  EXPECT_THAT(Refusal(kCustomActivation, "B=1,C=2,H=0,W=3"), HasSubstr("may be empty"));
}

TEST(Programs, PrintedOnesKeepTheirSignature) {
  for (const Example& example : kExamples) {
    auto printed = PrintProgram(example.program);
    ASSERT_TRUE(printed.ok());
    EXPECT_EQ(*PrintProgram(*printed), *printed);
    EXPECT_EQ(Check(*printed, example.dims).signature,
              Check(example.program, example.dims).signature);
  }
  EXPECT_EQ(*PrintProgram(kMatMul), kMatMul);
  EXPECT_EQ(*PrintProgram(kMaxPool),
            "operator MaxPool(N, C, H, W) {\n"
            "  input x[N,C,H,W];\n"
            "  output y[N,C,H/2,W/2];\n"
            "  y[n,c,p,q] = max(r in 0..3, s in 0..3: x[n,c,2*p+r-1,2*q+s-1] else -inf);\n"
            "}\n");
}

TEST(Programs, PrintingKeepsWhatBindsTighter) {
  for (const char* expr :
       {"-(x + 1)^2", "(-x)^2", "x^(2 * x)", "x - (x - (x - 1))", "x / (x / x) * x",
        "(x < 1 ? x : 1) * 2", "select(x < 1 && !(x > 0 || x < -1), x, -x)", "2^-x", "-(-x)",
        "max(x, 1) - min(x, 2) % 3", "cast(x, f16) + relu(x)", "(x == x) == (x != x) ? 1 : 0",
        "x^x^x", "(x^x)^x"}) {
    std::string program =
        "operator F(N) {\n  input x[N];\n  output y[N];\n  y = " + std::string(expr) + ";\n}\n";
    auto printed = PrintProgram(program);
    ASSERT_TRUE(printed.ok()) << printed.status().message();
    EXPECT_EQ(Check(*printed, "N=3").canonical, Check(program, "N=3").canonical) << *printed;
    EXPECT_EQ(*PrintProgram(*printed), *printed);
  }
}

TEST(Programs, ArgumentsOfOperationsHaveItsType) {
  std::string program =
      R"(operator F(N) { input x[N] : f64, i[N] : i8, b[N] : bool, h[N] : f16; output y[N];
    y = x * h + i * 2 + (b ? 1 : 0) + b * h; })";
  Graph graph = Check(program, "N=3").graph;
  for (const Node& node : graph.nodes) {
    if (node.op != Op::kAdd && node.op != Op::kMul) continue;
    for (const Term& arg : node.args) EXPECT_EQ(graph.nodes[arg.node].type, node.type);
  }
  const Tensor& y = graph.tensors.back();
  EXPECT_EQ(graph.nodes[y.definition.node].type, ComputeType(y.type));
}

}  // namespace
}  // namespace kiln::language
