// SPDX-License-Identifier: Apache-2.0
// Single values and what the language's elementwise operations do to them (LANGUAGE.md section 5).
// The interpreter's arithmetic. Pure.
#pragma once

#include <cstdint>
#include <vector>

#include "proto/contract/graph.h"
#include "worker/compiler/analysis/interpreter.h"

namespace kiln::compiler {

struct Scalar {
  DType type = DType::kF32;  // a compute type: f32, f64, i32, i64 or bool
  double number = 0;         // of f32 and f64
  int64_t integer = 0;       // of the others
};

Scalar FloatScalar(DType type, double number,
                   Arithmetic arithmetic);          // rounded to f32 where that is asked
Scalar IntegerScalar(DType type, int64_t integer);  // wrapped

// The value as an operand of an operation that computes in `type`.
Scalar ConvertTo(DType type, const Scalar& value, Arithmetic arithmetic);
// cast(value, storage): rounded to the storage type, seen in its compute type.
Scalar CastTo(DType storage, const Scalar& value, Arithmetic arithmetic);

// Any operation but literals, variables, reads, select, and, or, reductions and softmax.
Scalar ApplyElementwise(const Node& node, const std::vector<Scalar>& arguments,
                        Arithmetic arithmetic);

// IEEE-754 2019 maximum and minimum: NaN wins, -0 is below +0.
double Maximum(double a, double b);
double Minimum(double a, double b);

}  // namespace kiln::compiler
