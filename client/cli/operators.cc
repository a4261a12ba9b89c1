// SPDX-License-Identifier: Apache-2.0
#include "client/cli/operators.h"

namespace kiln::cli {

const StandardOperator* FindOperator(const std::string& name) {
  for (const StandardOperator& known : StandardOperators()) {
    if (name == known.name) return &known;
  }
  return nullptr;
}

std::string OperatorNames() {
  std::string names;
  for (const StandardOperator& known : StandardOperators()) {
    names += (names.empty() ? "" : ", ") + std::string(known.name);
  }
  return names;
}

}  // namespace kiln::cli
