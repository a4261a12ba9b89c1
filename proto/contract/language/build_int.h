// SPDX-License-Identifier: Apache-2.0
// Nodes of extents, subscripts and bounds: all i64, division rounds down, constants folded.
#pragma once

#include <functional>

#include "proto/contract/language/node_pool.h"
#include "proto/contract/language/scope.h"

namespace kiln::language {

class IntBuilder {
 public:
  // `read` builds reads of tensors, as i64.
  IntBuilder(Scope* scope, NodePool* pool, std::function<Applied(const Expr&)> read)
      : scope_(*scope), pool_(*pool), read_(std::move(read)) {}

  Applied Build(const Expr& expr);

 private:
  Applied Operation(Op op, const Applied& a, const Applied& b);

  Scope& scope_;
  NodePool& pool_;
  std::function<Applied(const Expr&)> read_;
};

}  // namespace kiln::language
