// SPDX-License-Identifier: Apache-2.0
// Any bytes get an answer: a fixed sequence of mutated programs, for compilers without libFuzzer.
// What is accepted is printed and accepted again with the same signature.
#include <random>

#include "tests/proto/contract/language/programs.h"
#include "tests/proto/contract/language/seeds.h"

namespace kiln::language {
namespace {

// Words and signs of the language: mutations that keep most of a program whole.
const char* const kPieces[] = {
    "sum(",    "max(",     "over [",   "]",       "[",      "(",       ")",
    " in 0..", "..",       " else ",   "-",       "!",      "^2",      "?",
    ":",       ",",        ";",        "=",       "input ", "output ", "constant ",
    "i",       "N",        "x",        "1e-5",    "0x1p3",  "inf",     "nan",
    "cast(",   "f16",      "softmax(", "argmax(", "avg(",   "&&",      "<",
    "%",       "/",        "{",        "}",       "//",     "\n",      "9223372036854775807",
    "\xff",    "operator "};

std::string Mutated(std::string text, std::mt19937* random) {
  for (int edits = 1 + (*random)() % 2; edits > 0; --edits) {
    size_t at = text.empty() ? 0 : (*random)() % text.size();
    switch ((*random)() % 8) {
      case 0:
        text.erase(at, 1 + (*random)() % 8);
        break;
      case 1:
        text.insert(at, kPieces[(*random)() % std::size(kPieces)]);
        break;
      case 2:
        if (!text.empty()) text[at] = static_cast<char>((*random)());
        break;
      case 3:
        text.insert(at, text.substr((*random)() % (text.size() + 1), (*random)() % 40));
        break;
      case 4:
        text.insert(text.find_first_of(" ,;(", at) == std::string::npos
                        ? 0
                        : text.find_first_of(" ,;(", at),
                    "  ");
        break;
      case 5:  // another letter or digit, so that names and numbers change
        at = text.find_first_of("ijkdhpqnxtNMK0123", at);
        if (at != std::string::npos) text[at] = "ijkdhpqnxtNMK0123"[(*random)() % 17];
        break;
      case 6:
        at = text.find_first_of("+-*/", at);
        if (at != std::string::npos) text[at] = "+-*/"[(*random)() % 4];
        break;
      default:
        text.replace(at, std::min<size_t>(3, text.size() - at),
                     kPieces[(*random)() % std::size(kPieces)]);
    }
  }
  return text;
}

TEST(Mutations, GetAnAnswer) {
  std::mt19937 random(20240229);
  int accepted = 0;
  for (int n = 0; n < 12000; ++n) {
    WorkloadSpec spec = SpecOfBytes(Mutated(kSeeds[n % std::size(kSeeds)], &random), random());
    auto workload = CheckWorkload(spec);
    if (!workload.ok()) {
      ASSERT_EQ(workload.status().code(), absl::StatusCode::kInvalidArgument) << spec.program;
      ASSERT_FALSE(workload.status().message().empty());
      continue;
    }
    ++accepted;
    auto printed = PrintProgram(spec.program);
    ASSERT_TRUE(printed.ok());
    spec.program = *printed;
    auto again = CheckWorkload(spec);
    ASSERT_TRUE(again.ok()) << spec.program << again.status().message();
    ASSERT_EQ(again->canonical, workload->canonical) << spec.program;
  }
  EXPECT_GT(accepted, 300);  // else the mutations are too wild to show anything
}

// The time is linear in the size of the text: full texts of the worst sorts known stay within what
// a slow, sanitized machine needs. Quadratic behaviour took minutes.
TEST(Mutations, FullTextsOfEverySortGetAnAnswer) {
  const std::string kSorts[] = {"x[i+1]+",
                                "(x[i+1] else 0)+",
                                "sum(k in 0..i+1: x[k])+",
                                "x[i/2*2]+",
                                "i+",
                                "x[i]*",
                                "max(x[i],",
                                "(((",
                                "q*",
                                "x[q]*",
                                "x[i,i]+",
                                "cast(x[i],f16)+",
                                "softmax(x[j] over [j])+",
                                "sum(x[a]*x[b]*x[c])+",
                                "x[v[v[i]]]+",
                                "- - -",
                                "1+",
                                "x[i+N*N+M*N]+"};
  for (const std::string& sort : kSorts) {
    std::string program = "operator F(N, M) { input x[N], v[N] : i32; output y[N]; y[i] = ";
    while (program.size() < 64 * 1024 - 64) program += sort;
    program += "x[0]; }";
    for (const char* dims : {"N=9,M=7", "N=1..9,M=2..7"}) {
      auto workload = CheckWorkload(MakeSpec(program, dims));
      if (workload.ok()) continue;
      EXPECT_LT(workload.status().message().size(), 64 * 1024);
    }
  }
}

}  // namespace
}  // namespace kiln::language
