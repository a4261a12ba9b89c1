// SPDX-License-Identifier: Apache-2.0
// The syntax tree of a program, with positions. The parser makes it; the later stages (resolve,
// access, infer) write what they find into the fields set apart for them, so that no stage needs a
// tree of its own. Its depth is bounded by the nesting limit: operators of one level are one node
// with many operands (a + b - c), never a deep left spine.
#pragma once

#include <deque>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "proto/contract/dtype.h"
#include "proto/contract/graph.h"

namespace kiln::language {

using VarId = int;  // index into Scope::vars; a variable's bounds use only smaller ones

// A number that is known at submission and has no type yet: a literal, a static dim, an operation
// on such.
struct Constant {
  double value = 0;
  std::optional<int64_t> exact;  // of integers as they were written, beyond 2^53 too
  bool is_bool = false;          // value is 0 or 1
};

// What a name or read means; written by resolve.
enum class Reference { kNone, kDim, kVar, kTensor };

// The type of an expression; written by infer.
struct Inferred {
  std::optional<DType> type;  // a compute type; none: of literals alone, takes the other operand's
  std::optional<Constant> constant;  // its value, if it is known
  bool whole = false;                // an untyped one that is known to be an integer
};

enum class ExprKind {
  kNumber,
  kRead,     // a bare name (dim, variable, tensor) or a tensor with subscripts, maybe with `else`
  kUnary,    // op: kNeg, kNot
  kChain,    // args joined by ops, from the left: + -, or * / %, or &&, or ||
  kCompare,  // op, two args
  kPow,      // two args
  kSelect,   // three args; `a ? b : c` and select(a, b, c)
  kCall,     // op: a function of one argument, kMin or kMax
  kCast,     // to `storage`
  kReduce,
  kSoftmax
};

struct Expr;

struct NamePosition {
  absl::string_view name;
  size_t offset = 0;
};

struct RangeSyntax {
  NamePosition name;
  Expr* lo = nullptr;
  Expr* hi = nullptr;
};

struct Expr {
  ExprKind kind = ExprKind::kNumber;
  size_t offset = 0;          // of the operator or name: where a caret helps most
  absl::string_view text;     // kRead: the name; kNumber: as written
  Constant number;            // kNumber
  bool bracketed = false;     // kRead: subscripts stand there, maybe none
  Expr* otherwise = nullptr;  // kRead: what `else` gives
  Op op = Op::kNeg;
  std::vector<Expr*> args;
  std::vector<Op> ops;  // kChain: one per operand after the first
  ReduceOp reduce = ReduceOp::kSum;
  DType storage = DType::kF32;
  bool is_select_call = false;  // kSelect: written as a call
  std::vector<RangeSyntax> ranges;
  std::vector<NamePosition> over;  // kReduce, kSoftmax

  // resolve
  Reference reference = Reference::kNone;  // kRead
  int index = -1;                          // dim, variable or tensor
  std::vector<VarId>
      vars;  // kReduce, kSoftmax: those that it runs over; kRead without brackets: one per axis
  // access
  bool always_inside = false;  // kRead: `else` is dropped
  // infer
  Inferred inferred;
  std::vector<Inferred> prefix;  // kChain: of its first 1, 2, ... operands together
};

struct AxisSyntax {
  NamePosition name;
  Expr* extent = nullptr;  // of `in 0..extent`
};

struct DeclSyntax {
  NamePosition name;
  std::vector<Expr*> dims;
  std::optional<DType> type;
};

struct Statement {
  bool is_declaration = false;
  size_t offset = 0;

  // Declarations.
  TensorKind kind = TensorKind::kInput;
  std::vector<DeclSyntax> decls;

  // Assignments, and `output C[M,N] = ...`, which is both.
  NamePosition target;
  bool bracketed = false;  // axes stand there, maybe none
  std::vector<AxisSyntax> axes;
  std::optional<DType> type;
  Expr* value = nullptr;
  bool broken = false;  // a syntax error was reported in it
};

struct Program {
  NamePosition name;
  std::vector<NamePosition> dims;
  std::vector<Statement> statements;
  bool broken_declarations = false;  // names may be missing: what reads them cannot be judged
  // Names in statements with syntax errors: what is known of them is not reliable, so nothing is
  // said of them.
  std::set<absl::string_view> doubtful_names;

  std::deque<Expr> exprs;  // owns all; addresses are stable
  Expr* New(ExprKind kind, size_t offset) {
    exprs.emplace_back();
    exprs.back().kind = kind;
    exprs.back().offset = offset;
    return &exprs.back();
  }
};

}  // namespace kiln::language
