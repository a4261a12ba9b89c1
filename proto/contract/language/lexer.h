// SPDX-License-Identifier: Apache-2.0
// Program text to tokens. Linear; accepts any bytes and reports those that begin no token.
#pragma once

#include <vector>

#include "absl/strings/string_view.h"
#include "proto/contract/language/diagnostics.h"

namespace kiln::language {

enum class TokenKind { kName, kNumber, kSymbol, kEnd };

struct Token {
  TokenKind kind = TokenKind::kEnd;
  absl::string_view text;  // of the program
  size_t offset = 0;

  // Whether this is the given symbol or word.
  bool Is(absl::string_view word) const { return kind != TokenKind::kNumber && text == word; }
};

// The tokens of `text` and one of kind kEnd. Bytes that begin no token are reported and skipped.
std::vector<Token> Lex(absl::string_view text, Diagnostics* errors);

}  // namespace kiln::language
