// SPDX-License-Identifier: Apache-2.0
#include "client/cli/progress_line.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>

#include "absl/time/clock.h"

namespace kiln::cli {
namespace {

constexpr absl::Duration kRedraw = absl::Milliseconds(100);
constexpr char kEraseLine[] = "\r\033[K";

int Columns(std::FILE* file) {
  winsize size{};
  if (ioctl(fileno(file), TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return 80;
  return size.ws_col;
}

std::string FirstWord(const std::string& words) { return words.substr(0, words.find(' ')); }

}  // namespace

std::string FitWords(const std::string& words, int columns) {
  const size_t room = static_cast<size_t>(std::max(columns - 1, 1));
  return words.size() <= room ? words : words.substr(0, room);
}

ProgressLine::ProgressLine(std::FILE* err) : err_(err), terminal_(isatty(fileno(err)) == 1) {}

ProgressLine::~ProgressLine() { Clear(); }

void ProgressLine::Draw(const std::string& words) {
  if (!terminal_) return;
  const absl::Time now = absl::Now();
  if (now - drawn_ < kRedraw && FirstWord(words) == FirstWord(shown_)) return;
  std::fprintf(err_, "%s%s", kEraseLine, FitWords(words, Columns(err_)).c_str());
  std::fflush(err_);
  shown_ = words;
  drawn_ = now;
}

void ProgressLine::Clear() {
  if (!terminal_ || shown_.empty()) return;
  std::fputs(kEraseLine, err_);
  std::fflush(err_);
  shown_.clear();
}

}  // namespace kiln::cli
