// SPDX-License-Identifier: Apache-2.0
// A checked workload and its identity. The one door from text to everything else: CheckWorkload
// parses, checks, normalises, prints the canonical text and hashes it. Pure; linear in the size of
// the text; no input makes it crash.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "proto/contract/graph.h"
#include "proto/contract/spec.h"

namespace kiln {

struct Workload {
  WorkloadSpec spec;  // as it was asked
  Graph graph;
  Policy policy;          // of the spec
  std::string canonical;  // LANGUAGE.md section 7
  std::string signature;  // SHA-256 of "kiln/1\n" + canonical, 64 lower-case hex digits
};

// INVALID_ARGUMENT with all independent errors of the program (line, column, source line with a
// caret, what to write instead), or with the field of the spec at fault, its value and what is
// allowed (error.h).
absl::StatusOr<Workload> CheckWorkload(const WorkloadSpec& spec);

// The program's text, laid out as the language's own style has it (comments are lost). Errors as
// above, of syntax only. Print(Print(p)) == Print(p), and both have one signature.
absl::StatusOr<std::string> PrintProgram(absl::string_view program);

// Bytes that one launch needs: all inputs, outputs and constants by span, at the upper ends of
// dynamic dims. Saturates.
int64_t FootprintBytes(const Graph& graph);

// SHA-256 as 64 lower-case hex digits; of artifacts too.
std::string Sha256Hex(absl::string_view bytes);

}  // namespace kiln
