// SPDX-License-Identifier: Apache-2.0
// The standard operators of client/ops, embedded at build time.
#pragma once

#include <string>
#include <vector>

namespace kiln::cli {

struct StandardOperator {
  const char* name;
  const char* program;
};

// By name, ascending.
const std::vector<StandardOperator>& StandardOperators();
// Null if there is none of that name.
const StandardOperator* FindOperator(const std::string& name);
// "add, attention, ...", for errors.
std::string OperatorNames();

}  // namespace kiln::cli
