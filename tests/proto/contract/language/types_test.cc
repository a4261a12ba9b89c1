// SPDX-License-Identifier: Apache-2.0
// Types, literals and accumulators (LANGUAGE.md section 5), and the field case of literals under a
// foreign locale.
#include <clocale>
#include <cmath>
#include <limits>
#include <locale>

#include "gmock/gmock.h"
#include "tests/proto/contract/language/programs.h"

namespace kiln::language {
namespace {

using testing::HasSubstr;
using testing::Not;

const char kInputs[] = R"(operator F(N) {
  input f[N], d[N] : f64, h[N] : f16, i[N] : i32, l[N] : i64, c[N] : u8, b[N] : bool;
  output y[N] : f64 = )";

// The compute type of an expression, seen through the temporary that keeps it.
DType TypeOf(const std::string& expression) {
  std::string program =
      "operator F(N) { input f[N], d[N] : f64, h[N] : f16, i[N] : i32, l[N] : i64, c[N] : u8, b[N] "
      ": bool; "
      "output y[N] : f64; t[n in 0..N] = " +
      expression + "; y[n] = (t[n+1] else 0) == 0 ? 1 : 0; }";
  for (const Tensor& tensor : Check(program, "N=4").graph.tensors) {
    if (tensor.kind == TensorKind::kTemporary) return tensor.type;
  }
  ADD_FAILURE() << expression;
  return DType::kBool;
}

TEST(Types, OfExpressionsFollowTheirOperands) {
  EXPECT_EQ(TypeOf("f[n] * 2"), DType::kF32);
  EXPECT_EQ(TypeOf("h[n] * h[n]"), DType::kF32);
  EXPECT_EQ(TypeOf("f[n] * d[n]"), DType::kF64);
  EXPECT_EQ(TypeOf("d[n] * i[n]"), DType::kF64);
  EXPECT_EQ(TypeOf("i[n] * 2"), DType::kI32);
  EXPECT_EQ(TypeOf("c[n] + c[n]"), DType::kI32);
  EXPECT_EQ(TypeOf("i[n] + l[n]"), DType::kI64);
  EXPECT_EQ(TypeOf("i[n] + n"), DType::kI64);
  EXPECT_EQ(TypeOf("l[n] * f[n]"), DType::kF32);
  EXPECT_EQ(TypeOf("i[n] / 2"), DType::kI32);
  EXPECT_EQ(TypeOf("i[n] + 2.0"), DType::kI32);
  EXPECT_EQ(TypeOf("exp(i[n])"), DType::kF32);
  EXPECT_EQ(TypeOf("floor(i[n])"), DType::kI32);
  EXPECT_EQ(TypeOf("abs(l[n])"), DType::kI64);
  EXPECT_EQ(TypeOf("cast(f[n], i8)"), DType::kI32);
  EXPECT_EQ(TypeOf("cast(i[n], f16)"), DType::kF32);
  EXPECT_EQ(TypeOf("sum(i[k])"), DType::kI32);
  EXPECT_EQ(TypeOf("sum(b[k])"), DType::kI32);
  EXPECT_EQ(TypeOf("avg(i[k])"), DType::kF32);
  EXPECT_EQ(TypeOf("argmax(f[k])"), DType::kI32);
  EXPECT_EQ(TypeOf("argmax(k in 0..4000000000: f[k] else 0)"), DType::kI64);
  EXPECT_EQ(TypeOf("argmax(k in 0..2147483648: f[k] else 0)"), DType::kI32);
  EXPECT_EQ(TypeOf("argmax(k in 0..2147483649: f[k] else 0)"), DType::kI64);
  EXPECT_EQ(TypeOf("b[n] ? 1 : i[n]"), DType::kI32);
  EXPECT_EQ(TypeOf("b[n] + b[n]"), DType::kI32);
  EXPECT_EQ(TypeOf("i[n]^2 + f[n]"), DType::kF32);
}

std::string CanonicalOf(const std::string& expression) {
  return Check(std::string(kInputs) + expression + "; }", "N=4").canonical;
}

TEST(Types, ConversionsAreWrittenOut) {
  EXPECT_EQ(CanonicalOf("f + i"), CanonicalOf("f + cast(i, f32)"));
  EXPECT_EQ(CanonicalOf("f + i + d"), CanonicalOf("cast(f + cast(i, f32), f64) + d"));
  EXPECT_EQ(CanonicalOf("b + i"), CanonicalOf("cast(b, i32) + i"));
  EXPECT_EQ(CanonicalOf("avg(i over [N])"), CanonicalOf("avg(cast(i, f32) over [N])"));
  EXPECT_NE(CanonicalOf("f"), CanonicalOf("cast(f, f16)"));
  EXPECT_NE(CanonicalOf("i"), CanonicalOf("cast(i, i8)"));
  EXPECT_EQ(CanonicalOf("i"), CanonicalOf("cast(i, i32)"));
}

TEST(Types, ChoicesOfLiteralsTakeTheTypeThatIsWanted) {
  EXPECT_THAT(CanonicalOf("f + (b ? 0 : -inf)"), Not(HasSubstr("f64 select")));
  EXPECT_THAT(CanonicalOf("f + (b ? 0 : -inf)"), HasSubstr("f32:0x0p0 f32:-inf"));
  EXPECT_THAT(CanonicalOf("i + (b ? 0 : 7)"), HasSubstr("i32:0 i32:7"));
}

TEST(Types, WholeLiteralsAreIntegersAndOthersNot) {
  EXPECT_THAT(CanonicalOf("i * 3.0"), HasSubstr("i32:3"));
  EXPECT_THAT(CanonicalOf("i * (6/2)"), HasSubstr("i32:3"));
  EXPECT_THAT(CanonicalOf("f * (1/2)"), HasSubstr("f32:0x1p-1"));
  EXPECT_THAT(CanonicalOf("l * 9223372036854775807"), HasSubstr(" 9223372036854775807"));
  EXPECT_THAT(CanonicalOf("l * -9223372036854775808"), HasSubstr(" -9223372036854775808"));
}

TEST(Types, DynamicDimsAreLiterals) {
  auto canonical = [](const std::string& value) {
    return Check("operator F(N) { input x[N], v[N] : i32; output y[N]; y = " + value + "; }",
                 "N=1..9")
        .canonical;
  };
  EXPECT_THAT(canonical("x / N"), HasSubstr("cast f32 d0"));
  EXPECT_THAT(canonical("v * N"), HasSubstr("cast i32 d0"));
  EXPECT_THAT(canonical("x * (N / 2)"), HasSubstr("f64 div"));
}

TEST(Accumulators, AreThoseOfTheOperandsUnlessThePolicySays) {
  auto canonical = [](const char* type, const char* policy) {
    WorkloadSpec spec = MakeSpec(kMatMul, "M=4,N=4,K=4");
    for (const char* name : {"A", "B", "C"}) spec.types[name] = *ParseDType(type);
    spec.policy = *ParsePolicy(policy);
    return Check(spec).canonical;
  };
  EXPECT_THAT(canonical("f16", ""), HasSubstr("sum acc f32"));
  EXPECT_THAT(canonical("e4m3", ""), HasSubstr("sum acc f32"));
  EXPECT_THAT(canonical("f64", ""), HasSubstr("sum acc f64"));
  EXPECT_THAT(canonical("i8", ""), HasSubstr("sum acc i32"));
  EXPECT_THAT(canonical("i64", ""), HasSubstr("sum acc i64"));
  EXPECT_THAT(canonical("f16", "accumulate=C:f16"), HasSubstr("sum acc f16"));
  EXPECT_THAT(canonical("i64", "accumulate=C:i32"), HasSubstr("sum acc i32"));
}

TEST(Accumulators, OfOneOutputLeaveTheOthersAlone) {
  WorkloadSpec spec = MakeSpec(
      "operator F(N) { input x[N,N]; output y[N], z[N]; s[i] = sum(x[i,k]); y = s; z = s * 2; }",
      "N=4");
  spec.policy = *ParsePolicy("accumulate=z:bf16");
  EXPECT_THAT(Check(spec).canonical, testing::AllOf(HasSubstr("acc bf16"), HasSubstr("acc f32")));
}

struct CommaPoint : std::numpunct<char> {
  char do_decimal_point() const override { return ','; }
  char do_thousands_sep() const override { return '.'; }
  std::string do_grouping() const override { return "\3"; }
};

// Field case C13: literals are bit-exact whatever the locale of the process.
TEST(FieldCases, LiteralsAreBitExactInEveryLocale) {
  const std::string program =
      R"(operator F(N) { input x[N], v[N] : i32, l[N] : i64; output y[N], z[N] : i32, u[N] : i64, h[N] : f16, g[N] : bf16;
    y = max(x, -inf) + min(x, inf) + (x < 0 ? nan : 1e-45) + x * 3.4028235e38 + 0.1 + 0x1.8p3 + 1234567;
    z = v + -2147483648;
    u = l + 1234567890123;
    h = x + 65504;
    g = x + cast(3.3895313892515355e38, bf16); })";
  auto check = [&] {
    std::string canonical = Check(program, "N=4").canonical;
    for (const char* literal :
         {"f32:-inf", "f32:inf", "f32:nan", "f32:0x1p-149", "f32:0xffffffp104", "f32:0xcccccdp-27",
          "f32:0x3p2", "i32:-2147483648", " 1234567890123", "f32:0x7ffp5", "f64:0xffp120",
          "f32:0x12d687p0"}) {
      EXPECT_THAT(canonical, HasSubstr(literal));
    }
    return canonical;
  };
  std::string canonical = check();
  std::string printed = *PrintProgram(program);
  std::locale previous = std::locale::global(std::locale(std::locale::classic(), new CommaPoint));
  std::string saved = std::setlocale(LC_ALL, nullptr);
  for (const char* name : {"de_DE.UTF-8", "de_DE", "fr_FR.UTF-8"})
    std::setlocale(LC_ALL, name);  // one may be installed
  EXPECT_EQ(check(), canonical);
  EXPECT_EQ(*PrintProgram(program), printed);
  std::setlocale(LC_ALL, saved.c_str());
  std::locale::global(previous);
}

TEST(Literals, ReadFromTheGraphHaveTheirBits) {
  Graph graph = Check("operator F() { output y[] : f64; y = 0.1; }", "").graph;
  const Node& literal = graph.nodes[graph.tensors[0].definition.node];
  EXPECT_EQ(literal.op, Op::kLiteral);
  EXPECT_EQ(literal.number, 0.1);
  graph = Check("operator F() { output y[]; y = -0.0; }", "").graph;
  EXPECT_TRUE(std::signbit(graph.nodes[graph.tensors[0].definition.node].number));
  graph = Check("operator F() { output y[]; y = 4.9e-324; }", "").graph;
  EXPECT_EQ(graph.nodes[graph.tensors[0].definition.node].number, 0.0);
  graph = Check("operator F() { output y[] : f64; y = 4.9e-324; }", "").graph;
  EXPECT_EQ(graph.nodes[graph.tensors[0].definition.node].number,
            std::numeric_limits<double>::denorm_min());
}

}  // namespace
}  // namespace kiln::language
