// SPDX-License-Identifier: Apache-2.0
// What a command says: one JSON object or lines for people on stdout, errors on stderr. One per
// process.
#pragma once

#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>

#include "absl/status/status.h"
#include "client/cli/exit_code.h"

namespace kiln::cli {

// Keys stay in the order in which they are put in, as CLI.md lists them.
using Json = nlohmann::ordered_json;

class Output {
 public:
  Output(bool json, std::FILE* out, std::FILE* err) : json_(json), out_(out), err_(err) {}

  bool json() const { return json_; }
  // With --json the object, otherwise the text; a final newline is added.
  void Print(const Json& object, const std::string& text);
  // A line for people on stderr, with --json too.
  void Note(const std::string& text);
  // "kiln: REASON: message", with --json also the `error` object on stdout.
  void Error(const absl::Status& status);

 private:
  const bool json_;
  std::FILE* const out_;
  std::FILE* const err_;
};

// `error {code, reason, message, details}`.
Json ErrorJson(const absl::Status& status);

}  // namespace kiln::cli
