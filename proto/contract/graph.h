// SPDX-License-Identifier: Apache-2.0
// The checked form of a program, which the compiler and the interpreter read and nothing else.
//
// A graph is a list of nodes. A node is a *function of its free variables*, which are numbered 0..
// by first appearance inside it; it uses other nodes by applying them to its own variables (a
// Term). Equal functions are one node, whatever their variables were called, so that a graph is
// linear in the program's text and two spellings of one meaning give equal graphs. Untyped
// temporaries that are only read through distinct lone variables are gone (their expressions are
// inlined); any other temporary is a tensor of kind kTemporary.
//
//   C[i,j] = sum(A[i,k] * B[k,j]):
//     n0(a,b)   = read A[a,b]
//     n1(a,b,c) = mul(n0(a,b), n2(b,c))          n2 = read B: the same shape of node, another
//     tensor n3(a,b)   = sum over c in 0..K of n1(a,c,b) C         = n3 applied to C's axes (0,1)
//
// Rules: a node's arguments come before it. `vars` of a Term index the variables of the *enclosing*
// node: free ones first (0..free_vars-1), then the ones that it binds, in order. Extents and bounds
// are Terms, so that dynamic dims need nothing special: an extent is a node without free variables
// over kDim and kLiteral; a static dim is folded to a literal.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "proto/contract/dtype.h"

namespace kiln {

using NodeId = int32_t;

enum class Op : uint8_t {
  kLiteral,  // `number` for f32/f64, `integer` for i32/i64/bool
  kDim,      // value of dynamic dim `index`, i64
  kVar,      // value of free variable 0, i64
  kRead,     // tensor `index` at args[0..rank); with `has_else`, args[rank] is what is read outside
             // the tensor
  kNeg,
  kNot,
  kAdd,
  kSub,
  kMul,
  kDiv,
  kMod,  // kDiv/kMod of expressions: LANGUAGE.md section 5
  kFloorDiv,
  kFloorMod,  // of subscripts and bounds; divisor positive
  kPow,
  kEq,
  kNe,
  kLt,
  kLe,
  kGt,
  kGe,
  kAnd,
  kOr,      // type bool
  kSelect,  // args: condition, then, else
  kCast,    // to `storage`, rounded there; type is ComputeType(storage)
  kAbs,
  kExp,
  kLog,
  kSqrt,
  kRsqrt,
  kTanh,
  kSigmoid,
  kErf,
  kGelu,
  kRelu,
  kSilu,
  kFloor,
  kCeil,
  kRound,
  kSin,
  kCos,
  kMin,
  kMax,      // element-wise, two arguments
  kReduce,   // `reduce` of args[0] over `bound`
  kSoftmax,  // args[0] at the bound variables, normalised over all `bound`; free variables
             // `at` (one per bound) say where the result is taken
};

enum class ReduceOp : uint8_t { kSum, kProd, kMax, kMin, kAvg, kArgmax, kArgmin, kAny, kAll };

struct Term {
  NodeId node = -1;
  std::vector<int> vars;  // of the enclosing node, one per free variable of `node`
  bool operator==(const Term&) const = default;
};

// A bound variable and its half-open range; empty if hi <= lo. Bounds may use the enclosing node's
// free variables and the variables bound before it.
struct Range {
  Term lo, hi;
  bool operator==(const Range&) const = default;
};

struct Node {
  Op op = Op::kLiteral;
  DType type = DType::kF32;  // compute type of the value: f32, f64, i32, i64 or bool
  int free_vars = 0;
  std::vector<Term> args;
  double number = 0;            // kLiteral of a float type
  int64_t integer = 0;          // kLiteral of an integer type or bool
  int index = -1;               // kDim: dynamic dim; kRead: tensor
  bool has_else = false;        // kRead
  DType storage = DType::kF32;  // kCast: the type rounded to
  ReduceOp reduce = ReduceOp::kSum;
  DType accumulator = DType::kF32;  // kReduce: what it accumulates in (policy included)
  std::vector<Range> bound;         // kReduce, kSoftmax
  std::vector<int> at;  // kSoftmax: per bound variable, the free variable that it is taken at
  bool operator==(const Node&) const = default;
};

enum class TensorKind : uint8_t { kInput, kConstant, kOutput, kTemporary };

struct Tensor {
  TensorKind kind = TensorKind::kInput;
  std::string name;  // of the asker; no part of the canonical text
  DType type = DType::kF32;
  std::vector<Term> shape;  // closed terms, one per axis
  std::vector<int64_t>
      strides;  // in elements; packed row-major if none were given; 0 repeats. Static shapes only:
                // empty if a dynamic dim makes them an expression (then packed)
  bool packed = true;                   // no strides were given, or they say the same
  int64_t alignment = 16;               // bytes, of the base pointer
  int alias_of = -1;                    // kOutput: tensor whose memory it shares exactly
  Term definition;                      // kOutput, kTemporary: applied to the axes 0..rank-1
  std::vector<std::string> axis_names;  // for people: of the definition's axes, or the dims' text
};

struct DynamicDim {
  std::string name;  // of the asker
  int64_t lo = 0, hi = 0;
};

struct Graph {
  std::string name;              // of the operator, for people
  std::vector<Node> nodes;       // arguments before users
  std::vector<Tensor> tensors;   // inputs and constants in the order of declaration, then outputs,
                                 // then temporaries in the order of definition
  std::vector<DynamicDim> dims;  // dynamic dims only, by position in the head
  std::vector<int>
      order;  // outputs and temporaries in the order they must be computed in (indices of tensors)

  bool is_static() const { return dims.empty(); }
};

// The value of a closed term of a static graph (extents, bounds without variables).
int64_t StaticValue(const Graph& graph, const Term& term);
// Static extents of a tensor, one per axis.
std::vector<int64_t> StaticShape(const Graph& graph, const Tensor& tensor);
// Elements from the first to one past the last that a static tensor touches; 0 if it is empty.
int64_t SpanElements(const Graph& graph, const Tensor& tensor);

struct Interval {
  int64_t lo = 0, hi = 0;  // both ends included; lo > hi: empty
};
// Bounds of an integer term, given those of the enclosing node's variables and of the dynamic dims
// (their declared ranges). Reads of tensors give their type's range. Saturates at +-2^62.
Interval Bounds(const Graph& graph, const Term& term, const std::vector<Interval>& vars);

}  // namespace kiln
