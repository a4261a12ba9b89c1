// SPDX-License-Identifier: Apache-2.0
// The function of one register tile at one size: named accumulators, the product's loop, joins,
// stores.
#pragma once

#include <string>
#include <vector>

#include "worker/compiler/tile/program.h"

namespace kiln::compiler::emit {

// What a tile's function is called with, equal for all its sizes.
struct TileSignature {
  std::vector<std::pair<std::string, const tile::View*>>
      pointers;               // parameter, view; views that are the same share one
  std::vector<bool> written;  // per pointer
  bool depth = false, first = false, last = false;  // further parameters
  size_t products = 0;                              // whose a and b come first
  // Parameter of a view that is no product's.
  const std::string& Of(const tile::View& view) const;
};
TileSignature SignatureOf(const tile::Program& program, const tile::Step& step,
                          const tile::Tile& tile, const std::vector<int>& around);

// "gemm_6x16".
std::string TileFunctionName(const tile::Tile& tile, int64_t rows, int64_t columns);

// `values`: the names of the functions of the stores' expressions, "" for the accumulator itself.
// Adds to `lanes` the vector types used.
std::string TileFunction(const tile::Tile& tile, const TileSignature& signature, int64_t rows,
                         int64_t columns, const std::vector<std::string>& values,
                         std::vector<int>* lanes);

}  // namespace kiln::compiler::emit
