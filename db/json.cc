// SPDX-License-Identifier: Apache-2.0
#include "db/json.h"

#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>

namespace kiln::db {
namespace {

constexpr char kHex[] = "0123456789abcdef";

int HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return -1;
}

}  // namespace

// --- writing ---

void JsonWriter::Value(int64_t value) { text_ += std::to_string(value); }
void JsonWriter::Value(uint64_t value) { text_ += std::to_string(value); }

void JsonWriter::Value(double value) {
  if (!std::isfinite(value)) return String(std::isnan(value) ? "nan" : value > 0 ? "inf" : "-inf");
  char text[32];
  const std::to_chars_result end = std::to_chars(text, text + sizeof text, value);
  text_.append(text, end.ptr);
}

void JsonWriter::String(absl::string_view value) {
  text_ += '"';
  const char* from = value.data();
  const char* const end = from + value.size();
  for (const char* at = from; at != end; ++at) {
    const auto c = static_cast<unsigned char>(*at);
    if (c >= 0x20 && c != '"' && c != '\\') continue;
    text_.append(from, at);  // what needs no escape, in one go
    from = at + 1;
    if (c == '\n') {
      text_ += "\\n";
    } else if (c < 0x20) {
      text_ += "\\u00";
      text_ += kHex[c >> 4];
      text_ += kHex[c & 15];
    } else {
      text_ += '\\';
      text_ += *at;
    }
  }
  text_.append(from, end);
  text_ += '"';
}

// --- reading ---

bool JsonReader::NextIs(absl::string_view name) {
  if (!ok_) return false;
  const char* at = at_;
  if (!first_) {
    if (at == end_ || *at != ',') return false;
    ++at;
  }
  // "name":
  if (end_ - at < static_cast<ptrdiff_t>(name.size()) + 3 || *at != '"' ||
      std::memcmp(at + 1, name.data(), name.size()) != 0 || at[name.size() + 1] != '"' ||
      at[name.size() + 2] != ':') {
    return false;
  }
  at_ = at + name.size() + 3;
  first_ = false;
  return true;
}

bool JsonReader::More(char close) {
  if (!ok_ || at_ == end_) {
    ok_ = false;
    return false;
  }
  if (*at_ == close) {
    ++at_;
    first_ = false;
    return false;
  }
  if (!first_) {
    if (*at_ != ',') {
      ok_ = false;
      return false;
    }
    ++at_;
  }
  first_ = false;
  return true;
}

template <typename T>
void JsonReader::Number(T& value) {
  if (!ok_) return;
  const std::from_chars_result result = std::from_chars(at_, end_, value);
  if (result.ec != std::errc()) return Fail();
  at_ = result.ptr;
  first_ = false;
}

void JsonReader::Value(int& value) { Number(value); }
void JsonReader::Value(int64_t& value) { Number(value); }
void JsonReader::Value(uint64_t& value) { Number(value); }

void JsonReader::Value(double& value) {
  if (!AtString()) return Number(value);
  std::string word;
  Value(word);
  if (word == "inf") {
    value = std::numeric_limits<double>::infinity();
  } else if (word == "-inf") {
    value = -std::numeric_limits<double>::infinity();
  } else if (word == "nan") {
    value = std::numeric_limits<double>::quiet_NaN();
  } else {
    Fail();
  }
}

void JsonReader::Value(bool& value) {
  const absl::string_view left(at_, end_ - at_);
  if (ok_ && left.substr(0, 4) == "true") {
    value = true;
    at_ += 4;
  } else if (ok_ && left.substr(0, 5) == "false") {
    value = false;
    at_ += 5;
  } else {
    Fail();
  }
  first_ = false;
}

void JsonReader::Value(absl::Time& value) {
  int64_t nanos = 0;
  Number(nanos);
  value = absl::FromUnixNanos(nanos);
}

void JsonReader::Value(std::string& value) {
  value.clear();
  Take('"');
  first_ = false;
  while (ok_) {
    const char* from = at_;
    while (at_ != end_ && *at_ != '"' && *at_ != '\\') ++at_;
    value.append(from, at_);
    if (at_ == end_) return Fail();
    if (*at_++ == '"') return;
    if (at_ == end_) return Fail();
    const char escape = *at_++;
    if (escape == '"' || escape == '\\') {
      value += escape;
    } else if (escape == 'n') {
      value += '\n';
    } else if (escape == 'u' && end_ - at_ >= 4 && at_[0] == '0' && at_[1] == '0' &&
               HexDigit(at_[2]) >= 0 && HexDigit(at_[3]) >= 0) {
      value += static_cast<char>(HexDigit(at_[2]) << 4 | HexDigit(at_[3]));
      at_ += 4;
    } else {
      return Fail();
    }
  }
}

}  // namespace kiln::db
