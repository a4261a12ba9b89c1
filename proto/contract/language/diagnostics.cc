// SPDX-License-Identifier: Apache-2.0
#include "proto/contract/language/diagnostics.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "proto/contract/error.h"

namespace kiln::language {
namespace {

constexpr size_t kWidth = 100;         // bytes of a source line that are shown
constexpr size_t kMaxErrors = 10'000;  // kept; text of noise alone makes no more memory than this

// Bytes that would disturb a terminal or a protobuf string are shown as '?'.
std::string Printable(absl::string_view text) {
  std::string out(text);
  for (char& c : out) {
    if (c == '\t') c = ' ';
    if (static_cast<unsigned char>(c) < 0x20 || static_cast<unsigned char>(c) > 0x7e) c = '?';
  }
  return out;
}

}  // namespace

std::string Quote(absl::string_view text) {
  constexpr size_t kLongest = 40;
  std::string shown = Printable(text.substr(0, kLongest));
  if (text.size() > kLongest) shown += "...";
  return absl::StrCat("`", shown, "`");
}

void Diagnostics::Add(size_t offset, std::string what, std::string hint) {
  if (errors_.size() >= kMaxErrors) return;
  errors_.push_back({std::min(offset, text_.size()), std::move(what), std::move(hint)});
}

absl::Status Diagnostics::ToStatus() const {
  if (errors_.empty()) return absl::OkStatus();
  std::vector<Error> sorted = errors_;
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const Error& a, const Error& b) { return a.offset < b.offset; });
  std::string message;
  ErrorInfo info{"INVALID_PROGRAM",
                 {{"field", "program"}, {"errors", absl::StrCat(sorted.size())}}};
  size_t line = 1, line_start = 0, at = 0;  // sorted, hence one pass over the text for all errors
  for (size_t n = 0; n < std::min(sorted.size(), kShown); ++n) {
    const Error& error = sorted[n];
    for (; at < error.offset; ++at) {
      if (text_[at] == '\n') {
        ++line;
        line_start = at + 1;
      }
    }
    size_t column = error.offset - line_start;
    size_t end = text_.find('\n', line_start);
    absl::string_view source =
        text_.substr(line_start, end == absl::string_view::npos ? end : end - line_start);
    if (!source.empty() && source.back() == '\r') source.remove_suffix(1);
    if (n == 0) {
      info.details["line"] = absl::StrCat(line);
      info.details["column"] = absl::StrCat(column + 1);
    }
    absl::StrAppend(&message, n == 0 ? "" : "\n", line, ":", column + 1, ": ", error.what, "\n");
    size_t from = column > kWidth - 20 ? column - (kWidth - 20) : 0;
    absl::StrAppend(&message, "    ",
                    Printable(source.substr(std::min(from, source.size()), kWidth)), "\n    ",
                    std::string(column - from, ' '), "^");
    if (!error.hint.empty()) absl::StrAppend(&message, "\n    ", error.hint);
  }
  if (sorted.size() > kShown) {
    absl::StrAppend(&message, "\n", "and ", sorted.size() - kShown, " more errors");
  }
  return MakeError(absl::StatusCode::kInvalidArgument, message, std::move(info));
}

}  // namespace kiln::language
