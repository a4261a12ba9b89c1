// SPDX-License-Identifier: Apache-2.0
// A tile program as text, for people and golden files. Pure; stable.
#pragma once

#include <string>

#include "worker/compiler/tile/program.h"

namespace kiln::compiler::tile {

std::string Print(const Program& program);

}  // namespace kiln::compiler::tile
