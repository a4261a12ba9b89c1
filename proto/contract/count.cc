// SPDX-License-Identifier: Apache-2.0
// Launch numbers over dynamic dims: + - * / % (floor), unary -, parentheses, integers and $0, $1,
// ...
#include <cctype>

#include "proto/contract/plan.h"

namespace kiln {
namespace {

constexpr int64_t kLimit = int64_t{1} << 62;
constexpr int kMaxNesting = 64;

// Recursive descent; the first failure sticks, and values after it mean nothing.
class Evaluator {
 public:
  Evaluator(const std::string& text, const std::vector<int64_t>& dims) : text_(text), dims_(dims) {}

  bool Run(int64_t* value, std::string* error) {
    *value = Sum();
    if (error_.empty() && at_ != text_.size()) Fail("unexpected '" + text_.substr(at_, 1) + "'");
    if (error_.empty() && (*value < 0 || *value > kLimit)) Fail("the value is not in 0..2^62");
    if (!error_.empty()) *error = "launch number \"" + text_ + "\": " + error_;
    return error_.empty();
  }

 private:
  int64_t Sum() {
    int64_t value = Product();
    while (error_.empty() && (Peek() == '+' || Peek() == '-')) {
      const bool plus = text_[at_++] == '+';
      const int64_t right = Product();
      if (plus ? __builtin_add_overflow(value, right, &value)
               : __builtin_sub_overflow(value, right, &value)) {
        Fail("the value overflows");
      }
    }
    return value;
  }

  int64_t Product() {
    int64_t value = Unary();
    while (error_.empty() && (Peek() == '*' || Peek() == '/' || Peek() == '%')) {
      const char op = text_[at_++];
      const int64_t right = Unary();
      if (!error_.empty()) break;
      if (op == '*') {
        if (__builtin_mul_overflow(value, right, &value)) Fail("the value overflows");
      } else if (right <= 0) {
        Fail("a divisor is not positive");
      } else {
        const int64_t rest = value % right;
        value = op == '/' ? value / right - (rest < 0 ? 1 : 0) : rest + (rest < 0 ? right : 0);
      }
    }
    return value;
  }

  int64_t Unary() {
    if (++nesting_ > kMaxNesting) Fail("nested more than 64 deep");
    int64_t value = 0;
    if (!error_.empty()) return 0;
    if (Peek() == '-') {
      ++at_;
      if (__builtin_sub_overflow(int64_t{0}, Unary(), &value)) Fail("the value overflows");
    } else if (Peek() == '(') {
      ++at_;
      value = Sum();
      if (Peek() != ')') Fail("a ')' is missing");
      ++at_;
    } else if (Peek() == '$') {
      ++at_;
      const int64_t dim = Number();
      if (error_.empty() && dim >= static_cast<int64_t>(dims_.size()))
        Fail("$" + std::to_string(dim) + " is no dim");
      value = error_.empty() ? dims_[dim] : 0;
    } else {
      value = Number();
    }
    --nesting_;
    return value;
  }

  int64_t Number() {
    const size_t start = at_;
    int64_t value = 0;
    while (std::isdigit(static_cast<unsigned char>(Peek()))) {
      if (__builtin_mul_overflow(value, int64_t{10}, &value) ||
          __builtin_add_overflow(value, int64_t{text_[at_] - '0'}, &value)) {
        Fail("a number is too large");
      }
      ++at_;
    }
    if (at_ == start) Fail("a number is missing");
    return value;
  }

  char Peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  void Fail(const std::string& why) {
    if (error_.empty()) error_ = why;
  }

  const std::string& text_;
  const std::vector<int64_t>& dims_;
  size_t at_ = 0;
  int nesting_ = 0;
  std::string error_;
};

}  // namespace

bool Evaluate(const Count& count, const std::vector<int64_t>& dims, int64_t* value,
              std::string* error) {
  if (!count.expression.empty()) return Evaluator(count.expression, dims).Run(value, error);
  *value = count.value;
  if (count.value >= 0 && count.value <= kLimit) return true;
  *error = "launch number " + std::to_string(count.value) + " is not in 0..2^62";
  return false;
}

}  // namespace kiln
