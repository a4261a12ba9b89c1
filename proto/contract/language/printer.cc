// SPDX-License-Identifier: Apache-2.0
#include "proto/contract/language/printer.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "proto/contract/language/parser.h"
#include "proto/contract/language/words.h"
#include "proto/contract/workload.h"

namespace kiln::language {
namespace {

// How tightly an expression holds together; what stands in a tighter place gets parentheses.
enum Strength { kChoice, kOr, kAnd, kCompare, kSum, kProduct, kUnary, kPower, kPrimary };

Strength StrengthOf(const Expr& expr) {
  switch (expr.kind) {
    case ExprKind::kSelect:
      return expr.is_select_call ? kPrimary : kChoice;
    case ExprKind::kChain:
      switch (expr.ops[0]) {
        case Op::kOr:
          return kOr;
        case Op::kAnd:
          return kAnd;
        case Op::kAdd:
        case Op::kSub:
          return kSum;
        default:
          return kProduct;
      }
    case ExprKind::kCompare:
      return kCompare;
    case ExprKind::kUnary:
      return kUnary;
    case ExprKind::kPow:
      return kPower;
    case ExprKind::kRead:
      // `x[i] else 0 * y` is right but reads wrongly.
      return expr.otherwise != nullptr ? kOr : kPrimary;
    default:
      return kPrimary;
  }
}

struct Output {
  std::string text;
  bool compact = false;  // subscripts and bounds: x[2*p+r-1]
};

// Writes without spaces around signs while it lives.
class Compact {
 public:
  explicit Compact(Output* out) : out_(*out), saved_(out->compact) { out_.compact = true; }
  ~Compact() { out_.compact = saved_; }

 private:
  Output& out_;
  bool saved_;
};

void Write(const Expr& expr, Output* out);

void WriteAt(const Expr& expr, Strength least, Output* out) {
  bool parentheses = StrengthOf(expr) < least;
  if (parentheses) out->text.push_back('(');
  Write(expr, out);
  if (parentheses) out->text.push_back(')');
}

void WriteList(const std::vector<Expr*>& exprs, absl::string_view separator, Output* out) {
  for (size_t i = 0; i < exprs.size(); ++i) {
    if (i > 0) absl::StrAppend(&out->text, separator);
    Write(*exprs[i], out);
  }
}

void WriteInts(const std::vector<Expr*>& ints, Output* out) {
  Compact compact(out);
  out->text.push_back('[');
  WriteList(ints, ",", out);
  out->text.push_back(']');
}

void WriteOver(const Expr& expr, Output* out) {
  for (size_t i = 0; i < expr.over.size(); ++i) {
    absl::StrAppend(&out->text, i == 0 ? " over [" : ",", expr.over[i].name);
  }
  if (!expr.over.empty()) out->text.push_back(']');
}

void WriteRead(const Expr& expr, Output* out) {
  absl::StrAppend(&out->text, expr.text);
  if (!expr.bracketed) return;
  WriteInts(expr.args, out);
  if (expr.otherwise == nullptr) return;
  absl::StrAppend(&out->text, " else ");
  const Expr& value = *expr.otherwise;
  if (value.kind == ExprKind::kUnary && value.op == Op::kNeg) {
    out->text.push_back('-');
    WriteAt(*value.args[0], kPrimary, out);
  } else {
    WriteAt(value, kPrimary, out);
  }
}

void WriteReduction(const Expr& expr, Output* out) {
  absl::StrAppend(&out->text, ReductionName(expr.reduce), "(");
  for (size_t i = 0; i < expr.ranges.size(); ++i) {
    const RangeSyntax& range = expr.ranges[i];
    absl::StrAppend(&out->text, i == 0 ? "" : ", ", range.name.name, " in ");
    Compact compact(out);
    WriteAt(*range.lo, kSum, out);
    absl::StrAppend(&out->text, "..");
    WriteAt(*range.hi, kSum, out);
  }
  if (!expr.ranges.empty()) absl::StrAppend(&out->text, ": ");
  Write(*expr.args[0], out);
  WriteOver(expr, out);
  out->text.push_back(')');
}

void WriteCall(absl::string_view name, const std::vector<Expr*>& args, Output* out) {
  absl::StrAppend(&out->text, name, "(");
  WriteList(args, ", ", out);
  out->text.push_back(')');
}

void Write(const Expr& expr, Output* out) {
  Strength strength = StrengthOf(expr);
  Strength tighter = static_cast<Strength>(strength + 1);
  switch (expr.kind) {
    case ExprKind::kNumber:
      absl::StrAppend(&out->text, expr.text);
      break;
    case ExprKind::kRead:
      WriteRead(expr, out);
      break;
    case ExprKind::kUnary:
      absl::StrAppend(&out->text, OperatorSign(expr.op));
      WriteAt(*expr.args[0], kUnary, out);
      break;
    case ExprKind::kChain:
      WriteAt(*expr.args[0], strength, out);
      for (size_t i = 0; i < expr.ops.size(); ++i) {
        absl::string_view space = out->compact ? "" : " ";
        absl::StrAppend(&out->text, space, OperatorSign(expr.ops[i]), space);
        WriteAt(*expr.args[i + 1], tighter, out);
      }
      break;
    case ExprKind::kCompare:
      WriteAt(*expr.args[0], kSum, out);
      absl::StrAppend(&out->text, " ", OperatorSign(expr.op), " ");
      WriteAt(*expr.args[1], kSum, out);
      break;
    case ExprKind::kPow:
      WriteAt(*expr.args[0], kPrimary, out);
      out->text.push_back('^');
      WriteAt(*expr.args[1], kUnary, out);
      break;
    case ExprKind::kSelect:
      if (expr.is_select_call) {
        WriteCall("select", expr.args, out);
      } else {
        WriteAt(*expr.args[0], kOr, out);
        absl::StrAppend(&out->text, " ? ");
        Write(*expr.args[1], out);
        absl::StrAppend(&out->text, " : ");
        Write(*expr.args[2], out);
      }
      break;
    case ExprKind::kCall:
      WriteCall(FunctionName(expr.op), expr.args, out);
      break;
    case ExprKind::kCast:
      absl::StrAppend(&out->text, "cast(");
      Write(*expr.args[0], out);
      absl::StrAppend(&out->text, ", ", Print(expr.storage), ")");
      break;
    case ExprKind::kReduce:
      WriteReduction(expr, out);
      break;
    case ExprKind::kSoftmax:
      absl::StrAppend(&out->text, "softmax(");
      Write(*expr.args[0], out);
      WriteOver(expr, out);
      out->text.push_back(')');
      break;
  }
}

void WriteStatement(const Statement& statement, Output* out) {
  constexpr absl::string_view kWords[] = {"input ", "constant ", "output "};
  absl::StrAppend(&out->text, "  ");
  if (statement.is_declaration) {
    absl::StrAppend(&out->text, kWords[static_cast<int>(statement.kind)]);
    for (size_t i = 0; i < statement.decls.size(); ++i) {
      const DeclSyntax& decl = statement.decls[i];
      absl::StrAppend(&out->text, i == 0 ? "" : ", ", decl.name.name);
      WriteInts(decl.dims, out);
      if (decl.type) absl::StrAppend(&out->text, " : ", Print(*decl.type));
    }
  } else {
    absl::StrAppend(&out->text, statement.target.name);
    if (statement.bracketed) out->text.push_back('[');
    for (size_t i = 0; i < statement.axes.size(); ++i) {
      absl::StrAppend(&out->text, i == 0 ? "" : ",", statement.axes[i].name.name);
      if (statement.axes[i].extent == nullptr) continue;
      absl::StrAppend(&out->text, " in 0..");
      Compact compact(out);
      WriteAt(*statement.axes[i].extent, kSum, out);
    }
    if (statement.bracketed) out->text.push_back(']');
    if (statement.type) absl::StrAppend(&out->text, " : ", Print(*statement.type));
  }
  if (statement.value != nullptr) {
    absl::StrAppend(&out->text, " = ");
    Write(*statement.value, out);
  }
  absl::StrAppend(&out->text, ";\n");
}

}  // namespace

std::string PrintExpr(const Expr& expr) {
  Output out;
  out.compact = true;  // what messages quote are extents and subscripts
  Write(expr, &out);
  return std::move(out.text);
}

std::string ShowExpr(const Expr& expr) {
  constexpr size_t kLongest = 80;
  std::string text = PrintExpr(expr);
  if (text.size() > kLongest) text = text.substr(0, kLongest - 3) + "...";
  return text;
}

std::string PrintTree(const Program& program) {
  std::vector<std::string> dims;
  for (const NamePosition& dim : program.dims) {
    dims.emplace_back(dim.name.data(), dim.name.size());
  }
  Output out;
  out.text = absl::StrCat("operator ", program.name.name, "(", absl::StrJoin(dims, ", "), ") {\n");
  for (const Statement& statement : program.statements) WriteStatement(statement, &out);
  return absl::StrCat(out.text, "}\n");
}

}  // namespace kiln::language

namespace kiln {

absl::StatusOr<std::string> PrintProgram(absl::string_view program) {
  language::Diagnostics errors(program);
  language::Program tree = language::ParseProgram(program, &errors);
  if (!errors.ok()) return errors.ToStatus();
  return language::PrintTree(tree);
}

}  // namespace kiln
