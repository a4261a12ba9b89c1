// SPDX-License-Identifier: Apache-2.0
// The process in which foreign code runs: it loads plans, verifies them and measures them, one
// request at a time, and may die of any of them. The worker's own binary, run again with
// --bench-child; requests come on stdin, answers leave on stdout (bench_protocol.h). bench.h is the
// worker's side.
#pragma once

namespace kiln::worker {

inline constexpr char kBenchChildFlag[] = "--bench-child";

// What main does if argv[1] is --bench-child: serves requests until stdin ends. Returns the exit
// status.
int RunBenchChild();

}  // namespace kiln::worker
