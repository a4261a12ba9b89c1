// SPDX-License-Identifier: Apache-2.0
// Syntax tree to text, laid out as the language's own style has it.
#pragma once

#include <string>

#include "proto/contract/language/ast.h"

namespace kiln::language {

std::string PrintExpr(const Expr& expr);
// The same, cut where it is too long for a message.
std::string ShowExpr(const Expr& expr);
std::string PrintTree(const Program& program);

}  // namespace kiln::language
