// SPDX-License-Identifier: Apache-2.0
// The products that kernels are compared on.
#pragma once

#include <string>
#include <vector>

#include "proto/contract/workload.h"

namespace kiln::bench {

struct Shape {
  std::string group;  // "square", "odd", "thin" (at most 8 rows), "constant"
  std::string text;   // "1024x1024x1024": M, N, K; "32*..." batched; "...T" both sides transposed;
                      // "...C" constant B
};

std::vector<Shape> Shapes();
// f32. Ends the process where the text is no shape.
Workload MakeWorkload(const std::string& text);
double Flops(const Workload& workload);

}  // namespace kiln::bench
