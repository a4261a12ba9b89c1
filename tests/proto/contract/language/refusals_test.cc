// SPDX-License-Identifier: Apache-2.0
// What is refused, where the message points and what it says to write instead (LANGUAGE.md section
// 8).
#include "gmock/gmock.h"
#include "proto/contract/error.h"
#include "tests/proto/contract/language/programs.h"

namespace kiln::language {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

struct Refused {
  const char* statements;  // of a program over x[N], w[N], v[N] : i32 and y[N]
  const char* says;
  const char* hints;
};

const Refused kRefused[] = {
    // Named in section 8.
    {"y[v[i]] = x[i];", "cannot be computed", "h[v] = sum(ids[t] == v ? w[t] : 0)"},
    {"y[i+1] = x[i];", "cannot be computed", "turn it round"},
    {"y[i] += x[i];", "assigned once", "scatter turns round"},
    {"y[i] = y[i-1] + x[i];", "its own definition", "sum(j in 0..i+1: x[j])"},
    {"for i in 0..N { y[i] = x[i]; }", "no statement `for`", "no loops"},
    {"y = cumsum(x);", "no function `cumsum`", "sum(j in 0..i+1: x[j])"},
    {"y = sort(x);", "no function `sort`", "no sorting"},
    {"y = topk(x);", "no function `topk`", "no top-k"},
    {"y = x * rand(1);", "no function `rand`", "pass the mask"},
    {"y = dropout(x);", "no function `dropout`", "pass the mask"},
    {"y = nonzero(x);", "no function `nonzero`", "shapes do not depend on data"},
    {"output z[v[0]]; z[i] = 1; y = x;", "depends on the tensor `v`", "pass the lengths"},
    {"output z[v]; z[i] = 1; y = x;", "depends on the tensor `v`", "pass the lengths"},
    {"y[i] = v[i] & 3;", "no bit operations", "powers of two"},
    {"y[i] = v[i] << 3;", "no bit operations", "powers of two"},
    {"y[i] = ~v[i];", "no bit operations", "!b"},
    // Names.
    {"y = x + q;", "`q` is neither a tensor nor a dim", "declare it"},
    {"y[i] = x[i] + q;", "`q` is neither", "bind it"},
    {"y[i] = q[i];", "no tensor `q`", "declare it"},
    {"y = t; t = x;", "read before it is assigned", "move the statement"},
    {"x = y;", "is an input", "alias"},
    {"N = x;", "is a dim", "another name"},
    {"y = x; y = w;", "a second time", "name of its own"},
    {"y[x] = w[x];", "is a tensor", "another name"},
    {"y[N] = w[0];", "is a dim", "another name"},
    {"y[i] = sum(j in 0..N: x[j[0]]);", "is a variable, it has no subscripts", ""},
    {"y[i] = N[i];", "is a dim, it has no subscripts", "alone"},
    {"input x[N]; y = x;", "declared twice", "once"},
    {"input N[N]; y = x;", "is a dim already", "another name"},
    {"exp = x; y = x;", "reserved", "another name"},
    {"output over[N]; y = x;", "reserved", "another name"},
    {"y : f16 = x;", "stands where it is declared", "output y"},
    // Shapes and variables.
    {"y[i,j] = x[i];", "declared with 1 axes and assigned with 2", "one variable per axis"},
    {"y[i] = x[i,i];", "has 1 axes, 2 subscripts", "one subscript per axis"},
    {"t[i,i] = x[i]; y = x;", "stands twice on the left", "i == j"},
    {"y[i] = x;", "stands without subscripts", "x[...]"},
    {"t = x[i]; y = x;", "needs its subscripts", "t[i,j]"},
    {"t[i] = 1; y = x;", "has no range", "i in 0..N"},
    {"y[i] = sum(x[i]);", "binds no variable", "k in 0..K"},
    {"y[i] = max(x[i]);", "binds no variable", "max(a, b)"},
    {"y = sum(x);", "what does sum run over", "over [K]"},
    {"y = sum(x over [i]);", "is no dim", "over [K]"},
    {"y[i] = sum(x[j] over [N]);", "is a dim; in a statement with subscripts",
     "sum(x[k] over [k])"},
    {"y[i] = sum(i in 0..N: x[i]);", "bound already around", "variable of its own"},
    {"y[i] = argmax(x[j] * w[k]);", "binds 2 variables", "one variable"},
    {"t[] = 1; y = sum(t over [N]);", "nothing that sum runs over has a dim", "name a dim"},
    {"y[i] = softmax(x[i] over [j]);", "is no variable here", "softmax"},
    {"y[i] = softmax(x[0] over [i]);", "does not occur", "variable of the expression"},
    {"y = sum(k in 0..3, x over [N]);", "expected `in`", "k in 0..K"},
    {"y[i] = sum(k in 0..3: x[k] over [k]);", "exclude each other", "sum(x[k] over [k])"},
    {"y[i in 0..N+1] = x[i];", "the axis is declared as N (8), here it is N+1 (9)",
     "leave the range out"},
    {"t[i in 1..N] = x[i]; y = x;", "expected `0`", "begins at 0"},
    // Integers.
    {"y[i] = x[i*i];", "two factors", "all factors but one"},
    {"y[i] = x[N/i];", "a divisor depends", "divisors hold only"},
    {"y[i] = x[i/0];", "is not positive", "at least 1"},
    {"y[i] = x[i % (N-N)];", "is not positive", "at least 1"},
    {"y[i] = x[1.5];", "is no integer", "hold integers"},
    {"y[i] = x[w[i]];", "holds f32", "integer type"},
    {"y[i] = x[abs(i)];", "only + - * / %", "temporary"},
    {"input z[N-9]; y = x;", "N-9 = -1", "at least 0"},
    {"input z[1099511627776]; y = x;", "1099511627776", "below 2^40"},
    {"input z[q]; y = x;", "`q` is no dim", "name it in the head"},
    // Accesses.
    {"y[i] = x[i+1];", "subscript 0, i+1, runs from 1 to 8, the axis has N (8)", "x[i+1] else 0"},
    {"y[i] = x[i-1];", "runs from -1 to 6", "else 0"},
    {"y[i] = x[2*i];", "runs from 0 to 14", "else 0"},
    {"y[i] = sum(j in 0..i+2: x[j]);", "runs from 0 to 8", "else 0"},
    {"y[i] = avg(j in 0..i: x[j]);", "may be empty", "at least 1 long"},
    {"y[i] = argmax(j in i..N-1: x[j]);", "may be empty", "at least 1 long"},
    {"y[i] = avg(j in 0..v[i]: x[j]);", "may be empty", "at least 1 long"},
    // Types.
    {"y = x && w;", "must be bool, this is f32", "x != 0"},
    {"y = !x;", "must be bool", "x != 0"},
    {"y = x ? 1 : 0;", "the condition must be bool", "x != 0"},
    {"y[i] = any(x[k]);", "must be bool", "x != 0"},
    {"y = v * 0.5;", "is no integer", "cast(x, f32)"},
    {"y = v + 3000000000;", "does not fit", "cast(x, i64)"},
    {"y = v == inf ? 1 : 0;", "is no integer", "cast"},
    {"y = v ^ 5;", "literal exponents 0 to 4", "cast(x, f32)"},
    {"y[i] = v[i+1] else 0.5;", "is no integer", "cast"},
    {"t[i] : i8 = 300; y = x;", "has no range", ""},
    {"t[i in 0..N] : i8 = 300; y = x;", "does not fit the declared type", "-128..127"},
    {"y = cast(x, f33);", "expected a type", "f64 f32"},
    // Syntax.
    {"y = 1 < x < 2;", "do not chain", "a < b && b < c"},
    {"y = x ** 2;", "no operator", "a ^ b"},
    {"y = max(x, w, 1);", "two arguments", "max(a, max(b, c))"},
    {"y = exp(x, w);", "1 argument is expected, 2 are given", "exp(x)"},
    {"y = select(x, w);", "3 arguments are", "select(condition, a, b)"},
    {"y = softmax(x);", "expected `over`", "over [K]"},
    {"y = exp;", "is a function", "reserved"},
    {"y = 2x;", "`2x` is not a number", "no suffix"},
    {"y = 1e999;", "beyond what f64 holds", "inf"},
    {"y = 1.;", "expected `;`", "semicolon"},
    {"y = $;", "byte 0x24", "ASCII"},
    {"y = ;", "expected an expression", ""},
    {"input z; y = x;", "expected `[`", "x[]"},
    {"input z[N] = 1; y = x;", "only an output", "needs no declaration"},
    {"output a[N], b[N] = x; y = x;", "one output at a time", "of their own"},
    {"output z[N]; y = x;", "never assigned", "z[...] = ...;"},
};

std::string ProgramWith(const std::string& statements) {
  return "operator F(N) { input x[N], w[N], v[N] : i32; output y[N];\n" + statements + "\n}";
}

TEST(Refusals, SayWhatIsWrongAndWhatToWrite) {
  for (const Refused& refused : kRefused) {
    EXPECT_THAT(Refusal(ProgramWith(refused.statements), "N=8"),
                AllOf(HasSubstr(refused.says), HasSubstr(refused.hints)))
        << refused.statements;
  }
}

struct Placed {
  const char* statements;
  const char* place;  // line:column, lines counted from the one before the statements
};

TEST(Refusals, PointAtTheirPlace) {
  const Placed kPlaced[] = {{"y = x + q;", "2:9:"},     {"y[i] = x[i+1];", "2:11:"},
                            {"y[i] = x[i]", "2:12:"},   {"y[i] =\n  x[i] +\n\tq;", "4:2:"},
                            {"y = x +;", "2:8:"},       {"y[i] = x[i,i];", "2:8:"},
                            {"y = exp(x, w);", "2:8:"}, {"y = x; z", "3:1:"},
                            {"y = v * 0.5;", "2:9:"}};
  for (const Placed& placed : kPlaced) {
    EXPECT_THAT(Refusal(ProgramWith(placed.statements), "N=8"), StartsWith(placed.place))
        << placed.statements;
  }
}

TEST(Refusals, ShowTheLineWithACaret) {
  EXPECT_EQ(Refusal(ProgramWith("  y[i] = x[i+1];"), "N=8"),
            "2:13: the read can fall outside `x`: subscript 0, i+1, runs from 1 to 8, the axis has "
            "N (8) elements from 0\n"
            "      y[i] = x[i+1];\n"
            "                ^\n"
            "    say what is read there: x[i+1] else 0; or narrow the range of a variable");
}

TEST(Refusals, CarryPlaceAndNumberAsDetails) {
  auto workload = CheckWorkload(MakeSpec(ProgramWith("y = q + r;"), "N=8"));
  ErrorInfo info = GetErrorInfo(workload.status());
  EXPECT_EQ(info.reason, "INVALID_PROGRAM");
  EXPECT_EQ(info.details["field"], "program");
  EXPECT_EQ(info.details["line"], "2");
  EXPECT_EQ(info.details["column"], "5");
  EXPECT_EQ(info.details["errors"], "2");
}

TEST(Refusals, ShowAllIndependentErrorsAtOnce) {
  std::string message = Refusal(R"(operator F(N) {
  input x[N], v[N] : i32;
  output a[N], b[N], c[N], d[N], e[N];
  a[i] = x[i+1];
  b = v * 0.5;
  c = x + unknown;
  d[i] = x[i] +;
  t = c + 1;
  e = t + d;
}
)",
                                "N=4");
  for (const char* place : {"4:13:", "5:11:", "6:11:", "7:16:"})
    EXPECT_THAT(message, HasSubstr(place));
  // What depends on a wrong statement is not called wrong.
  EXPECT_THAT(message,
              AllOf(Not(HasSubstr("\n8:")), Not(HasSubstr("\n9:")), Not(HasSubstr("3:12"))));
}

TEST(Refusals, OutputsWithoutMatchingVariablesSayWhatToWrite) {
  auto program = [](const std::string& statement) {
    return "operator F(M, K) { input A[M,M], B[M,K]; output C[M,K], D[2*M], E[M,M]; " + statement +
           " }";
  };
  EXPECT_THAT(Refusal(program("C = sum(A[i,j] * B[j,k]);"), "M=2,K=3"),
              AllOf(HasSubstr("two variables range over M"), HasSubstr("write C[i,j] = ...")));
  EXPECT_THAT(Refusal(program("C = B[0,k];"), "M=2,K=3"),
              AllOf(HasSubstr("no variable ranges over M"), HasSubstr("write C[i,j] = ...")));
  EXPECT_THAT(Refusal(program("D = B[i,0];"), "M=2,K=3"),
              AllOf(HasSubstr("2*M is no plain dim"), HasSubstr("write D[i] = ...")));
  EXPECT_THAT(Refusal(program("E = A[i,j];"), "M=2,K=3"),
              AllOf(HasSubstr("M stands twice"), HasSubstr("write E[i,j] = ...")));
  EXPECT_THAT(Refusal(program("E = A;"), "M=2,K=3"),
              AllOf(HasSubstr("repeats a dim"), HasSubstr("write subscripts")));
  EXPECT_THAT(Refusal(program("t[i,k] = sum(A[i,j] * B[j,k]) + B[k,i]; C = B;"), "M=2,K=3"),
              AllOf(HasSubstr("`k` ranges over axis 1 of B"), HasSubstr("make the dims equal")));
}

TEST(Refusals, OutputsMustHoldTheDimsOfTheirExpression) {
  EXPECT_THAT(Refusal("operator F(M, N) { input x[M,N]; output y[M]; y = x; }", "M=2,N=3"),
              AllOf(HasSubstr("has a dim `N`"), HasSubstr("sum(... over [N])")));
}

TEST(Refusals, ProgramsHaveAHeadAnOutputAndAnEnd) {
  EXPECT_THAT(Refusal("", ""), HasSubstr("expected `operator`"));
  EXPECT_THAT(Refusal("operator F() { }", ""), HasSubstr("no output"));
  EXPECT_THAT(Refusal("operator F() { output y[]; y = 1;", ""), HasSubstr("a program ends with }"));
  EXPECT_THAT(Refusal(std::string(kMatMul) + kMatMul, "M=1,N=1,K=1"), HasSubstr("one operator"));
  EXPECT_THAT(Refusal("operator F(N, N) { output y[N]; y = 1; }", "N=1"), HasSubstr("named twice"));
  EXPECT_THAT(Refusal("operator sum(N) { output y[N]; y = 1; }", "N=1"), HasSubstr("reserved"));
}

}  // namespace
}  // namespace kiln::language
