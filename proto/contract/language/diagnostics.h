// SPDX-License-Identifier: Apache-2.0
// The errors of one program, collected while it is checked and shown all at once: line and column,
// what is wrong, the source line with a caret, what to write instead. Used by every stage of the
// language; not thread-safe.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace kiln::language {

class Diagnostics {
 public:
  // `text` must outlive this.
  explicit Diagnostics(absl::string_view text) : text_(text) {}

  // Notes an error at a byte offset of the text. `hint` says what to write instead; may be empty.
  void Add(size_t offset, std::string what, std::string hint = "");

  bool ok() const { return errors_.empty(); }
  size_t size() const { return errors_.size(); }

  // OK, or INVALID_ARGUMENT with all errors in the order of the text (the first kShown in full) and
  // the details "field", "line", "column" (of the first) and "errors".
  absl::Status ToStatus() const;

  static constexpr size_t kShown = 20;  // a broken file should not fill the screen

 private:
  struct Error {
    size_t offset;
    std::string what, hint;
  };
  absl::string_view text_;
  std::vector<Error> errors_;
};

// A name or another piece of the program's text as error messages show it: quoted, cut, without
// control bytes.
std::string Quote(absl::string_view text);

}  // namespace kiln::language
