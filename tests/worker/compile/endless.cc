// SPDX-License-Identifier: Apache-2.0
#include "tests/worker/compile/endless.h"

#include "tests/worker/processes.h"
#include "worker/compile/host_compiler.h"

namespace kiln::worker {

Endless EndlessSource() {
  return {
      "constexpr long Spin() { long s = 0; for (long i = 0; i < (1L << 40); ++i) s ^= i; return s; "
      "}\n"
      "constexpr long Outer() { long s = 0; for (long i = 0; i < 1000000; ++i) s ^= Spin(); return "
      "s; }\n"
      "static_assert(Outer() == 0);\n",
      {"-fconstexpr-ops-limit=9223372036854775807", "-fconstexpr-loop-limit=2147483647"}};
}

int CompileForEver(const char* directory) {
  auto root = TempRoot::Make(directory, 0);
  if (!root.ok()) return 1;
  auto compiler =
      HostCompiler::Make({.supervisor = OwnBinary(), .limit = absl::Minutes(10)}, **root);
  if (!compiler.ok()) return 2;
  const Endless endless = EndlessSource();
  return (*compiler)->Compile(endless.source, endless.flags, nullptr).ok() ? 0 : 3;
}

}  // namespace kiln::worker
