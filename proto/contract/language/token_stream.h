// SPDX-License-Identifier: Apache-2.0
// The parser's place in the tokens, with the small checks that both of its halves (statements,
// expressions) share.
#pragma once

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "proto/contract/language/lexer.h"
#include "proto/contract/language/limits.h"
#include "proto/contract/language/words.h"

namespace kiln::language {

class TokenStream {
 public:
  TokenStream(std::vector<Token> tokens, Diagnostics* errors)
      : tokens_(std::move(tokens)), errors_(errors) {}

  const Token& Peek(size_t ahead = 0) const {
    return tokens_[std::min(at_ + ahead, tokens_.size() - 1)];
  }
  const Token& Take() {
    const Token& token = Peek();
    if (at_ + 1 < tokens_.size()) ++at_;
    return token;
  }
  bool At(absl::string_view word) const { return Peek().Is(word); }
  // For going back over what was taken.
  size_t position() const { return at_; }
  const Token& Taken(size_t position) const { return tokens_[position]; }
  // Where the token that was taken last ends: the place of something that is missing there.
  size_t EndOfTaken() const {
    if (at_ == 0) return 0;
    return tokens_[at_ - 1].offset + tokens_[at_ - 1].text.size();
  }

  bool AtEnd() const { return Peek().kind == TokenKind::kEnd; }
  bool Accept(absl::string_view word) {
    if (!At(word)) return false;
    Take();
    return true;
  }

  // Reports "expected WHAT, found ..." at the next token. Returns false, for the caller to pass on.
  bool Expected(absl::string_view what, std::string hint = "") {
    std::string found = AtEnd() ? "the end of the text" : Quote(Peek().text);
    return Fail(Peek().offset, absl::StrCat("expected ", what, ", found ", found), std::move(hint));
  }
  bool Fail(size_t offset, std::string what, std::string hint = "") {
    errors_->Add(offset, std::move(what), std::move(hint));
    return false;
  }
  bool Expect(absl::string_view word, std::string hint = "") {
    return Accept(word) || Expected(Quote(word), std::move(hint));
  }

  // A name that something new may bear.
  bool ExpectName(absl::string_view of_what, absl::string_view* name, size_t* offset) {
    if (Peek().kind != TokenKind::kName) return Expected(absl::StrCat("the name of ", of_what));
    if (IsReserved(Peek().text)) {
      return Fail(Peek().offset,
                  absl::StrCat(Quote(Peek().text), " is a reserved word and cannot name ", of_what),
                  "choose another name");
    }
    *offset = Peek().offset;
    *name = Take().text;
    return true;
  }

 private:
  std::vector<Token> tokens_;
  Diagnostics* errors_;
  size_t at_ = 0;
};

}  // namespace kiln::language
