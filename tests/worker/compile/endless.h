// SPDX-License-Identifier: Apache-2.0
// A source that the compiler does not get done with, and a worker that compiles it.
#pragma once

#include <string>
#include <vector>

namespace kiln::worker {

struct Endless {
  std::string source;
  std::vector<std::string> flags;
};
Endless EndlessSource();

// Compiles it with temporary files in `directory`; returns only if that ends.
int CompileForEver(const char* directory);

}  // namespace kiln::worker
