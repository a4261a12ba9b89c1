// SPDX-License-Identifier: Apache-2.0
#include "proto/contract/language/parser.h"

#include "absl/strings/str_cat.h"
#include "proto/contract/language/expr_parser.h"

namespace kiln::language {
namespace {

class Parser {
 public:
  Parser(absl::string_view text, Diagnostics* errors)
      : t_(Lex(text, errors), errors), expr_(&t_, &program_) {}

  Program Run() {
    if (!ParseHead()) {
      program_.broken_declarations = true;
      return std::move(program_);
    }
    while (!t_.AtEnd() && !t_.At("}")) {
      if (program_.statements.size() == kMaxStatements) {
        t_.Fail(t_.Peek().offset, absl::StrCat("more than ", kMaxStatements, " statements"),
                "split the operator in two");
        program_.broken_declarations = true;
        return std::move(program_);
      }
      ParseStatement();
    }
    bool ended = t_.Expect("}", "a program ends with }") &&
                 (t_.AtEnd() || t_.Expected("the end of the text", "a text holds one operator"));
    if (!ended) program_.broken_declarations = true;
    return std::move(program_);
  }

 private:
  bool ParseHead() {
    if (!t_.Expect("operator", "a program is operator NAME(DIMS) { ... }") ||
        !t_.ExpectName("the operator", &program_.name.name, &program_.name.offset) ||
        !t_.Expect("(", "dims stand in parentheses: operator MatMul(M, N, K)")) {
      return false;
    }
    if (!t_.At(")")) {
      do {
        NamePosition dim;
        if (!t_.ExpectName("a dim", &dim.name, &dim.offset)) return false;
        if (program_.dims.size() == kMaxDims) {
          return t_.Fail(dim.offset, absl::StrCat("more than ", kMaxDims, " dims"),
                         "write sizes that never change as integers");
        }
        program_.dims.push_back(dim);
      } while (t_.Accept(","));
    }
    return t_.Expect(")") && t_.Expect("{");
  }

  void ParseStatement() {
    Statement statement;
    statement.offset = t_.Peek().offset;
    size_t first = t_.position();
    bool declares = true;
    if (t_.Accept("input")) {
      statement.kind = TensorKind::kInput;
    } else if (t_.Accept("constant")) {
      statement.kind = TensorKind::kConstant;
    } else if (t_.Accept("output")) {
      statement.kind = TensorKind::kOutput;
    } else {
      declares = false;
    }
    statement.is_declaration = declares;
    if (declares ? !ParseDeclaration(&statement) : !ParseAssignment(&statement)) {
      statement.broken = true;
      if (declares) program_.broken_declarations = true;
      Recover();
      for (size_t i = first; i < t_.position(); ++i) {
        if (t_.Taken(i).kind == TokenKind::kName) program_.doubtful_names.insert(t_.Taken(i).text);
      }
    }
    program_.statements.push_back(std::move(statement));
  }

  // Goes on behind the next ";" or block, or before what surely begins a statement or ends the
  // program.
  void Recover() {
    int depth = 0;  // of blocks, which other languages have
    while (!t_.AtEnd()) {
      if (depth == 0 && (t_.At("}") || t_.At("input") || t_.At("constant") || t_.At("output")))
        return;
      const Token& token = t_.Take();
      if (token.Is("{")) ++depth;
      if (token.Is("}") && --depth == 0) return;
      if (token.Is(";") && depth == 0) return;
    }
  }

  bool ParseDeclaration(Statement* statement) {
    do {
      DeclSyntax decl;
      if (!t_.ExpectName("a tensor", &decl.name.name, &decl.name.offset)) return false;
      if (!t_.Expect("[", "a declaration gives the shape: x[M,K]; a scalar is x[]")) return false;
      if (!expr_.ParseSubscripts(&decl.dims)) return false;
      if (t_.Accept(":")) {
        decl.type.emplace();
        if (!expr_.ParseType(&*decl.type)) return false;
      }
      statement->decls.push_back(std::move(decl));
    } while (t_.Accept(","));
    if (t_.At("=")) {
      if (statement->kind != TensorKind::kOutput) {
        return t_.Fail(t_.Peek().offset, "only an output may be assigned where it is declared",
                       "a temporary needs no declaration: t = ...;");
      }
      if (statement->decls.size() != 1) {
        return t_.Fail(t_.Peek().offset,
                       "one output at a time may be assigned where it is declared",
                       "declare the others in a statement of their own");
      }
      t_.Take();
      statement->target = statement->decls[0].name;
      statement->value = expr_.ParseExpr();
      if (statement->value == nullptr) return false;
    }
    return EndStatement();
  }

  bool EndStatement() {
    if (t_.Accept(";")) return true;
    std::string found =
        t_.AtEnd() ? "the text ends" : absl::StrCat("there is ", Quote(t_.Peek().text));
    return t_.Fail(t_.EndOfTaken(), absl::StrCat("expected `;`, ", found),
                   "a statement ends with a semicolon");
  }

  bool ParseAssignment(Statement* statement) {
    const Token& first = t_.Peek();
    if (first.kind == TokenKind::kName && !IsReserved(first.text)) {
      absl::string_view hint = ForeignHint(first.text);
      bool assigns = t_.Peek(1).Is("=") || t_.Peek(1).Is("[") || t_.Peek(1).Is(":");
      if (!hint.empty() && !assigns) {
        return t_.Fail(first.offset, absl::StrCat("there is no statement ", Quote(first.text)),
                       std::string(hint));
      }
    }
    if (!t_.ExpectName("a tensor", &statement->target.name, &statement->target.offset))
      return false;
    if (t_.Accept("[")) {
      statement->bracketed = true;
      if (!ParseAxes(statement)) return false;
    }
    if (t_.Accept(":")) {
      statement->type.emplace();
      if (!expr_.ParseType(&*statement->type)) return false;
    }
    for (absl::string_view sign : {"+=", "-=", "*=", "/=", "<<=", ">>="}) {
      if (!t_.At(sign)) continue;
      return t_.Fail(
          t_.Peek().offset,
          absl::StrCat(Quote(sign), ": a tensor is assigned once, there is no accumulation"),
          "a sum is C[i,j] = sum(A[i,k] * B[k,j]); a scatter turns round: "
          "h[v] = sum(ids[t] == v ? w[t] : 0)");
    }
    if (!t_.Expect("=", "a statement is name[i,j] = expression;")) return false;
    statement->value = expr_.ParseExpr();
    return statement->value != nullptr && EndStatement();
  }

  // "[" already taken. Anything but a variable is a computed subscript.
  bool ParseAxes(Statement* statement) {
    if (t_.Accept("]")) return true;
    do {
      size_t offset = t_.Peek().offset;
      Expr* subscript = expr_.ParseInt();
      if (subscript == nullptr) return false;
      if (subscript->kind != ExprKind::kRead || subscript->bracketed) {
        return t_.Fail(offset, "a subscript on the left is one variable, it cannot be computed",
                       "for a scatter or histogram turn it round: "
                       "h[v] = sum(ids[t] == v ? w[t] : 0)");
      }
      AxisSyntax axis;
      axis.name = {subscript->text, subscript->offset};
      if (t_.Accept("in")) {
        if (t_.Peek().text != "0")
          return t_.Expected("`0`", "an axis begins at 0: t[i in 0..N] = ...");
        t_.Take();
        if (!t_.Expect("..", "the range of an axis is 0..N")) return false;
        axis.extent = expr_.ParseInt();
        if (axis.extent == nullptr) return false;
      }
      if (statement->axes.size() == kMaxRank) {
        return t_.Fail(offset, absl::StrCat("more than ", kMaxRank, " axes"),
                       "fold axes that are always used together into one");
      }
      statement->axes.push_back(axis);
    } while (t_.Accept(","));
    return t_.Expect("]");
  }

  Program program_;
  TokenStream t_;
  ExprParser expr_;
};

}  // namespace

Program ParseProgram(absl::string_view text, Diagnostics* errors) {
  if (text.size() > kMaxTextBytes) {
    errors->Add(0, absl::StrCat("the text has ", text.size(), " bytes, more than ", kMaxTextBytes),
                "split the operator in two");
    Program program;
    program.broken_declarations = true;
    return program;
  }
  return Parser(text, errors).Run();
}

}  // namespace kiln::language
