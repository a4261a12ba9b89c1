// SPDX-License-Identifier: Apache-2.0
#include "proto/contract/language/expr_parser.h"

#include <charconv>
#include <cmath>
#include <limits>

namespace kiln::language {

// Counts one level of nesting while it lives; the recursion of the parser goes through it wherever
// text can nest.
class ExprParser::Nested {
 public:
  explicit Nested(ExprParser* parser) : parser_(*parser) { ++parser_.depth_; }
  ~Nested() { --parser_.depth_; }
  bool TooDeep() const {
    if (parser_.depth_ <= kMaxNesting) return false;
    parser_.t_.Fail(parser_.t_.Peek().offset,
                    absl::StrCat("expressions nest deeper than ", kMaxNesting, " levels"),
                    "give a part of it a name: t[i] = ...;");
    return true;
  }

 private:
  ExprParser& parser_;
};

Expr* ExprParser::ParseExpr() {
  Nested nested(this);
  if (nested.TooDeep()) return nullptr;
  Expr* condition = ParseLevel(0);
  if (condition == nullptr || !t_.At("?")) return condition;
  Expr* select = program_.New(ExprKind::kSelect, t_.Take().offset);
  Expr* yes = ParseExpr();
  if (yes == nullptr || !t_.Expect(":", "a choice is c ? a : b")) return nullptr;
  Expr* no = ParseExpr();
  if (no == nullptr) return nullptr;
  select->args = {condition, yes, no};
  return select;
}

// Levels, loosest first: || && comparison + - * / % unary.
Expr* ExprParser::ParseLevel(int level) {
  switch (level) {
    case 0:
      return ParseChain(level, {Op::kOr});
    case 1:
      return ParseChain(level, {Op::kAnd});
    case 2:
      return ParseCompare();
    case 3:
      return ParseChain(level, {Op::kAdd, Op::kSub});
    case 4:
      return ParseChain(level, {Op::kMul, Op::kDiv, Op::kMod});
    default:
      return ParseUnary();
  }
}

Expr* ExprParser::ParseChain(int level, std::initializer_list<Op> ops) {
  Expr* first = ParseLevel(level + 1);
  Expr* chain = nullptr;
  while (first != nullptr) {
    const Op* op = ops.begin();
    while (op != ops.end() && !t_.At(OperatorSign(*op))) ++op;
    if (op == ops.end()) break;
    size_t offset = t_.Take().offset;
    if (chain == nullptr) {
      chain = program_.New(ExprKind::kChain, offset);
      chain->args.push_back(first);
    }
    Expr* next = ParseLevel(level + 1);
    if (next == nullptr) return nullptr;
    chain->args.push_back(next);
    chain->ops.push_back(*op);
  }
  if (first != nullptr && level == 0) {
    for (absl::string_view sign : {"&", "|", "<<", ">>"}) {
      if (!t_.At(sign)) continue;
      t_.Fail(
          t_.Peek().offset, absl::StrCat(Quote(sign), ": there are no bit operations"),
          "shift by multiplying or dividing by powers of two; conditions are joined by && and ||");
      return nullptr;
    }
  }
  return chain != nullptr ? chain : first;
}

Expr* ExprParser::ParseCompare() {
  Expr* left = ParseSum();
  if (left == nullptr) return nullptr;
  auto find = [this]() -> std::optional<Op> {
    for (Op op : {Op::kEq, Op::kNe, Op::kLe, Op::kGe, Op::kLt, Op::kGt}) {
      if (t_.At(OperatorSign(op))) return op;
    }
    return std::nullopt;
  };
  std::optional<Op> op = find();
  if (!op) return left;
  Expr* compare = program_.New(ExprKind::kCompare, t_.Take().offset);
  Expr* right = ParseSum();
  if (right == nullptr) return nullptr;
  if (find()) {
    t_.Fail(t_.Peek().offset, "comparisons do not chain", "write a < b && b < c");
    return nullptr;
  }
  compare->op = *op;
  compare->args = {left, right};
  return compare;
}

Expr* ExprParser::ParseUnary() {
  bool negate = t_.At("-");
  if (negate || t_.At("!")) {
    Nested nested(this);
    if (nested.TooDeep()) return nullptr;
    Expr* unary = program_.New(ExprKind::kUnary, t_.Take().offset);
    Expr* operand = ParseUnary();
    if (operand == nullptr) return nullptr;
    unary->op = negate ? Op::kNeg : Op::kNot;
    unary->args = {operand};
    return unary;
  }
  Expr* primary = ParsePrimary();
  if (primary == nullptr) return nullptr;
  if (t_.At("**")) {
    t_.Fail(t_.Peek().offset, "`**` is no operator", "write a ^ b");
    return nullptr;
  }
  if (!t_.At("^")) return primary;
  Nested nested(this);
  if (nested.TooDeep()) return nullptr;
  Expr* power = program_.New(ExprKind::kPow, t_.Take().offset);
  Expr* exponent = ParseUnary();
  if (exponent == nullptr) return nullptr;
  power->args = {primary, exponent};
  return power;
}

Expr* ExprParser::ParsePrimary() {
  const Token& token = t_.Peek();
  if (token.kind == TokenKind::kNumber || token.Is("inf") || token.Is("nan")) return ParseNumber();
  if (token.kind == TokenKind::kName) return IsReserved(token.text) ? ParseWord() : ParseRead();
  if (t_.Accept("(")) {
    Expr* inner = ParseExpr();
    if (inner == nullptr || !t_.Expect(")")) return nullptr;
    return inner;
  }
  if (token.Is("~")) {
    t_.Fail(token.offset, "`~`: there are no bit operations", "the negation of a bool is !b");
    return nullptr;
  }
  t_.Expected("an expression");
  return nullptr;
}

// std::from_chars reads no locale and rounds correctly, so that a literal has the same bits
// everywhere.
Expr* ExprParser::ParseNumber() {
  const Token& token = t_.Take();
  Expr* number = program_.New(ExprKind::kNumber, token.offset);
  number->text = token.text;
  if (token.text == "inf" || token.text == "nan") {
    number->number.value = token.text == "inf" ? std::numeric_limits<double>::infinity()
                                               : std::numeric_limits<double>::quiet_NaN();
    return number;
  }
  bool hex = token.text.size() > 1 && (token.text[1] == 'x' || token.text[1] == 'X');
  const char* from = token.text.data() + (hex ? 2 : 0);
  const char* to = token.text.data() + token.text.size();
  auto format = hex ? std::chars_format::hex : std::chars_format::general;
  auto [end, error] = std::from_chars(from, to, number->number.value, format);
  if (error != std::errc() || end != to) {
    t_.Fail(token.offset, absl::StrCat(Quote(token.text), " is beyond what f64 holds"),
            "write inf, or 0 for what is smaller than 4.9e-324");
    return nullptr;
  }
  int64_t integer = 0;
  auto [int_end, int_error] = std::from_chars(from, to, integer, hex ? 16 : 10);
  if (int_error == std::errc() && int_end == to) number->number.exact = integer;
  return number;
}

bool ExprParser::ParseSubscripts(std::vector<Expr*>* subscripts) {
  Nested nested(this);
  if (nested.TooDeep()) return false;
  if (t_.Accept("]")) return true;
  do {
    Expr* subscript = ParseInt();
    if (subscript == nullptr) return false;
    subscripts->push_back(subscript);
  } while (t_.Accept(","));
  return t_.Accept("]") || t_.Expected("`,` or `]`",
                                       "subscripts are + - * / % over variables, dims, "
                                       "integers and reads of integer tensors");
}

Expr* ExprParser::ParseRead() {
  const Token& token = t_.Take();
  if (t_.At("(")) {
    std::string hint(ForeignHint(token.text));
    if (hint.empty()) hint = "a tensor's subscripts stand in brackets: x[i]";
    t_.Fail(token.offset, absl::StrCat("there is no function ", Quote(token.text)), hint);
    return nullptr;
  }
  Expr* read = program_.New(ExprKind::kRead, token.offset);
  read->text = token.text;
  if (!t_.Accept("[")) return read;
  read->bracketed = true;
  if (!ParseSubscripts(&read->args)) return nullptr;
  if (!t_.At("else")) return read;
  Nested nested(this);
  if (nested.TooDeep()) return nullptr;
  t_.Take();
  Expr* negation = nullptr;
  if (t_.At("-")) negation = program_.New(ExprKind::kUnary, t_.Take().offset);
  Expr* value = ParsePrimary();
  if (value == nullptr) return nullptr;
  if (negation != nullptr) {
    negation->op = Op::kNeg;
    negation->args = {value};
    value = negation;
  }
  read->otherwise = value;
  return read;
}

Expr* ExprParser::ParseWord() {
  const Token& token = t_.Peek();
  std::optional<ReduceOp> reduction = FindReduction(token.text);
  std::optional<Op> function = FindFunction(token.text);
  bool call =
      reduction || function || token.Is("select") || token.Is("cast") || token.Is("softmax");
  if (!call) {
    t_.Expected("an expression");
    return nullptr;
  }
  if (!t_.Peek(1).Is("(")) {
    t_.Fail(token.offset, absl::StrCat(Quote(token.text), " is a function; a `(` must follow"),
            "functions are reserved words: call a tensor or variable otherwise");
    return nullptr;
  }
  if (reduction) return ParseReduction(*reduction);
  if (token.Is("softmax")) return ParseSoftmax();
  if (token.Is("cast")) return ParseCast();
  bool select = token.Is("select");
  Expr* call_expr = program_.New(select ? ExprKind::kSelect : ExprKind::kCall, t_.Take().offset);
  call_expr->is_select_call = select;
  if (!select) call_expr->op = *function;
  std::string example = select ? "select(condition, a, b)" : absl::StrCat(token.text, "(x)");
  return ParseArguments(select ? 3 : 1, call_expr, example) ? call_expr : nullptr;
}

bool ExprParser::ParseArguments(size_t count, Expr* call, absl::string_view example) {
  size_t open = t_.Take().offset;
  if (!t_.At(")")) {
    do {
      Expr* argument = ParseExpr();
      if (argument == nullptr) return false;
      call->args.push_back(argument);
    } while (t_.Accept(","));
  }
  if (!t_.Expect(")")) return false;
  if (call->args.size() == count) return true;
  return t_.Fail(open,
                 absl::StrCat(count, count == 1 ? " argument is" : " arguments are", " expected, ",
                              call->args.size(), " are given"),
                 absl::StrCat("write ", example));
}

Expr* ExprParser::ParseReduction(ReduceOp op) {
  const Token& word = t_.Take();
  t_.Take();  // (
  Expr* reduction = program_.New(ExprKind::kReduce, word.offset);
  reduction->reduce = op;
  if (t_.Peek().kind == TokenKind::kName && t_.Peek(1).Is("in") && !ParseRanges(reduction)) {
    return nullptr;
  }
  Expr* body = ParseExpr();
  if (body == nullptr) return nullptr;
  reduction->args = {body};
  bool extremum = op == ReduceOp::kMax || op == ReduceOp::kMin;
  if (extremum && reduction->ranges.empty() && t_.Accept(",")) {
    Expr* other = ParseExpr();
    if (other == nullptr) return nullptr;
    reduction->kind = ExprKind::kCall;
    reduction->op = op == ReduceOp::kMax ? Op::kMax : Op::kMin;
    reduction->args.push_back(other);
    if (t_.At(",")) {
      t_.Fail(t_.Peek().offset,
              absl::StrCat(word.text, " takes two arguments element by element, or one to reduce"),
              absl::StrCat("write ", word.text, "(a, ", word.text, "(b, c))"));
      return nullptr;
    }
  } else if (t_.At("over") && !ParseOver(reduction)) {
    return nullptr;
  }
  return t_.Expect(")") ? reduction : nullptr;
}

bool ExprParser::ParseRanges(Expr* reduction) {
  do {
    RangeSyntax range;
    if (!t_.ExpectName("a variable", &range.name.name, &range.name.offset)) return false;
    if (!t_.Expect("in", "a range is k in 0..K")) return false;
    range.lo = ParseInt();
    if (range.lo == nullptr || !t_.Expect("..", "a range is k in 0..K")) return false;
    range.hi = ParseInt();
    if (range.hi == nullptr) return false;
    reduction->ranges.push_back(range);
  } while (t_.Accept(","));
  return t_.Expect(":", "ranges end with a colon: sum(k in 0..K: x[k])");
}

bool ExprParser::ParseOver(Expr* expr) {
  size_t offset = t_.Take().offset;
  if (!expr->ranges.empty()) {
    return t_.Fail(offset, "ranges and `over` exclude each other",
                   "write sum(k in 0..K: x[k]) or sum(x[k] over [k])");
  }
  if (!t_.Expect("[", "write over [K]")) return false;
  do {
    NamePosition name;
    if (!t_.ExpectName("a dim or variable to run over", &name.name, &name.offset)) return false;
    for (const NamePosition& other : expr->over) {
      if (other.name == name.name) {
        return t_.Fail(name.offset, absl::StrCat(Quote(name.name), " stands twice in `over`"),
                       "name each once");
      }
    }
    if (expr->over.size() == kMaxVariables) {
      return t_.Fail(name.offset, absl::StrCat("more than ", kMaxVariables, " names in `over`"));
    }
    expr->over.push_back(name);
  } while (t_.Accept(","));
  return t_.Expect("]");
}

Expr* ExprParser::ParseSoftmax() {
  Expr* softmax = program_.New(ExprKind::kSoftmax, t_.Take().offset);
  t_.Take();  // (
  Expr* body = ParseExpr();
  if (body == nullptr) return nullptr;
  softmax->args = {body};
  if (!t_.At("over")) {
    t_.Expected("`over`", "write softmax(x over [K])");
    return nullptr;
  }
  return ParseOver(softmax) && t_.Expect(")") ? softmax : nullptr;
}

Expr* ExprParser::ParseCast() {
  Expr* cast = program_.New(ExprKind::kCast, t_.Take().offset);
  t_.Take();  // (
  Expr* value = ParseExpr();
  if (value == nullptr || !t_.Expect(",", "write cast(x, f16)")) return nullptr;
  if (!ParseType(&cast->storage) || !t_.Expect(")")) return nullptr;
  cast->args = {value};
  return cast;
}

bool ExprParser::ParseType(DType* type) {
  std::optional<DType> found = ParseDType(t_.Peek().text);
  if (t_.Peek().kind != TokenKind::kName || !found) {
    return t_.Expected("a type", absl::StrCat("the types are ", AllDTypes()));
  }
  t_.Take();
  *type = *found;
  return true;
}

}  // namespace kiln::language
