// SPDX-License-Identifier: Apache-2.0
// One line on a terminal, redrawn in place; silent where stderr is no terminal. One thread at a
// time.
#pragma once

#include <cstdio>
#include <string>

#include "absl/time/time.h"

namespace kiln::cli {

class ProgressLine {
 public:
  // Draws if `err` is a terminal.
  explicit ProgressLine(std::FILE* err);
  ~ProgressLine();  // takes the line away
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  // At most ten times a second, and always when the words' beginning changes.
  void Draw(const std::string& words);
  void Clear();

 private:
  std::FILE* const err_;
  const bool terminal_;
  std::string shown_;
  absl::Time drawn_;
};

// What fits into `columns`, cut at the end.
std::string FitWords(const std::string& words, int columns);

}  // namespace kiln::cli
