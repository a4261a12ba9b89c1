// SPDX-License-Identifier: Apache-2.0
// The half of the parser that reads expressions.
#pragma once

#include "proto/contract/language/ast.h"
#include "proto/contract/language/token_stream.h"

namespace kiln::language {

class ExprParser {
 public:
  ExprParser(TokenStream* tokens, Program* program) : t_(*tokens), program_(*program) {}

  // `expr` and `int` of the grammar; null after an error was reported.
  Expr* ParseExpr();
  Expr* ParseInt() { return ParseSum(); }
  // "[" {int ","} "]", the "[" already taken.
  bool ParseSubscripts(std::vector<Expr*>* subscripts);
  // A type's name.
  bool ParseType(DType* type);

 private:
  class Nested;

  Expr* ParseLevel(int level);
  Expr* ParseChain(int level, std::initializer_list<Op> ops);
  Expr* ParseCompare();
  Expr* ParseSum() { return ParseLevel(3); }
  Expr* ParseUnary();
  Expr* ParsePrimary();
  Expr* ParseNumber();
  Expr* ParseRead();
  Expr* ParseWord();
  Expr* ParseReduction(ReduceOp op);
  Expr* ParseSoftmax();
  Expr* ParseCast();
  bool ParseRanges(Expr* reduction);
  bool ParseOver(Expr* expr);
  bool ParseArguments(size_t count, Expr* call, absl::string_view example);

  TokenStream& t_;
  Program& program_;
  int depth_ = 0;
};

}  // namespace kiln::language
