// SPDX-License-Identifier: Apache-2.0
#include "proto/contract/language/lexer.h"

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace kiln::language {
namespace {

bool IsWordByte(char c) { return absl::ascii_isalnum(c) || c == '_'; }

// Those that the language has, and those of other languages that the parser can then explain.
// Longer ones first.
constexpr absl::string_view kSymbols[] = {"<<=", ">>=", "..", "<=", ">=", "==", "!=", "&&",
                                          "||",  "+=",  "-=", "*=", "/=", "**", "<<", ">>",
                                          "++",  "--",  "->", "(",  ")",  "[",  "]",  "{",
                                          "}",   ",",   ";",  ":",  "=",  "+",  "-",  "*",
                                          "/",   "%",   "^",  "?",  "!",  "<",  ">",  "&",
                                          "|",   "~",   ".",  "@",  "'",  "\"", "#",  "\\"};

class Lexer {
 public:
  Lexer(absl::string_view text, Diagnostics* errors) : text_(text), errors_(errors) {}

  std::vector<Token> Run() {
    while (SkipSpace(), at_ < text_.size()) Next();
    tokens_.push_back({TokenKind::kEnd, absl::string_view(), text_.size()});
    return std::move(tokens_);
  }

 private:
  char Peek(size_t ahead = 0) const {
    return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0';
  }

  void SkipSpace() {
    while (at_ < text_.size()) {
      if (absl::ascii_isspace(text_[at_])) {
        ++at_;
      } else if (text_[at_] == '/' && Peek(1) == '/') {
        at_ = text_.find('\n', at_);
        if (at_ == absl::string_view::npos) at_ = text_.size();
      } else {
        return;
      }
    }
  }

  void Emit(TokenKind kind, size_t from) {
    tokens_.push_back({kind, text_.substr(from, at_ - from), from});
  }

  void Next() {
    size_t from = at_;
    char c = text_[at_];
    if (absl::ascii_isdigit(c) || (c == '.' && absl::ascii_isdigit(Peek(1)))) return Number();
    if (IsWordByte(c)) {
      while (IsWordByte(Peek())) ++at_;
      return Emit(TokenKind::kName, from);
    }
    // "--" of "a--b" is two signs, "1*-x" is fine anyway: only the statement forms x++ and x-- are
    // foreign, and the parser sees those as a missing operand.
    for (absl::string_view symbol : kSymbols) {
      if (symbol == "--" || symbol == "++") continue;
      if (absl::StartsWith(text_.substr(at_), symbol)) {
        at_ += symbol.size();
        return Emit(TokenKind::kSymbol, from);
      }
    }
    Strange(from);
  }

  // One error for a whole run of bytes that begin no token.
  void Strange(size_t from) {
    while (at_ < text_.size()) {
      unsigned char c = static_cast<unsigned char>(text_[at_]);
      if (c < 0x80 && (absl::ascii_isspace(c) || (c > 0x20 && c != '$' && c != '`' && c != 0x7f))) {
        break;
      }
      ++at_;
    }
    if (at_ == from) ++at_;
    errors_->Add(
        from,
        absl::StrCat("byte 0x", absl::Hex(static_cast<unsigned char>(text_[from]), absl::kZeroPad2),
                     " begins no word, number or sign"),
        "programs are plain ASCII; other characters may stand in comments only");
  }

  void Number() {
    size_t from = at_;
    bool hex = Peek() == '0' && (Peek(1) == 'x' || Peek(1) == 'X');
    if (hex) at_ += 2;
    size_t digits = at_;
    auto is_digit = [hex](char c) {
      return hex ? absl::ascii_isxdigit(c) : absl::ascii_isdigit(c);
    };
    while (is_digit(Peek())) ++at_;
    // A digit follows the point of a number: 0..3 is a range.
    if (Peek() == '.' && is_digit(Peek(1))) {
      ++at_;
      while (is_digit(Peek())) ++at_;
    }
    bool good = at_ > digits;
    char mark = absl::ascii_tolower(Peek());
    if (mark == (hex ? 'p' : 'e')) {
      ++at_;
      if (Peek() == '+' || Peek() == '-') ++at_;
      good = good && absl::ascii_isdigit(Peek());
      while (absl::ascii_isdigit(Peek())) ++at_;
    }
    if (IsWordByte(Peek())) good = false;
    while (IsWordByte(Peek())) ++at_;
    if (!good) {
      errors_->Add(from, absl::StrCat(Quote(text_.substr(from, at_ - from)), " is not a number"),
                   "numbers are 2, 0.5, 1e-5, 0x1.8p3, inf, nan; they have no suffix: types stand "
                   "in declarations and cast");
    }
    // A wrong one is reported here; its place is kept by a zero.
    tokens_.push_back(
        {TokenKind::kNumber, good ? text_.substr(from, at_ - from) : absl::string_view("0"), from});
  }

  absl::string_view text_;
  Diagnostics* errors_;
  size_t at_ = 0;
  std::vector<Token> tokens_;
};

}  // namespace

std::vector<Token> Lex(absl::string_view text, Diagnostics* errors) {
  return Lexer(text, errors).Run();
}

}  // namespace kiln::language
