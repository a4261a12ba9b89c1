// SPDX-License-Identifier: Apache-2.0
// JSON columns, written and read field by field, without a tree in between: lookups parse several
// of them, and a value's bits must come back whole (64-bit integers, shortest round-trip doubles;
// "inf" and "nan" as strings).
//
// A type has one template that names its fields in order; JsonWriter and JsonReader both run it:
//   template <typename Archive, typename T> requires Is<T, Baseline>
//   void Fields(Archive& a, T& b) { a.Field("name", b.name); a.Field("ratio", b.ratio); }
//
// A field that is T{} is left out and read back as T{}. The reader takes exactly what the writer
// writes: fields in order, no spaces, no unknown field. A new field is therefore a new schema
// version.
#pragma once

#include <array>
#include <cmath>
#include <concepts>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace kiln::db {

template <typename T, typename Plain>
concept Is = std::same_as<std::remove_const_t<T>, Plain>;

// How an enum is spelt; specialised beside the Fields of the types that use it.
template <typename Enum>
std::optional<Enum> ParseWord(absl::string_view word);

class JsonWriter {
 public:
  template <typename T>
  void Field(absl::string_view name, const T& value) {
    if (IsDefault(value)) return;
    Separate();
    String(name);
    text_ += ':';
    Value(value);
  }

  void Value(bool value) { text_ += value ? "true" : "false"; }
  void Value(int value) { Value(static_cast<int64_t>(value)); }
  void Value(int64_t value);
  void Value(uint64_t value);
  void Value(double value);
  void Value(const std::string& value) { String(value); }
  void Value(absl::Time value) { Value(absl::ToUnixNanos(value)); }
  template <typename E>
  requires std::is_enum_v<E>
  void Value(E value) { String(Print(value)); }
  template <typename T>
  void Value(const std::optional<T>& value) {
    Value(*value);  // an empty one is IsDefault
  }
  template <typename T>
  void Value(const std::vector<T>& values) {
    Elements(values);
  }
  template <typename T, size_t n>
  void Value(const std::array<T, n>& values) {
    Elements(values);
  }
  template <typename T>
  void Value(const std::map<std::string, T>& values) {
    Open('{');
    for (const auto& [key, value] : values) {
      Separate();
      String(key);
      text_ += ':';
      Value(value);
    }
    Close('}');
  }
  template <typename T>
  requires std::is_class_v<T>
  void Value(const T& value) {
    Open('{');
    Fields(*this, value);
    Close('}');
  }

  std::string Take() { return std::move(text_); }

 private:
  template <typename T>
  static bool IsDefault(const T& value) {
    if constexpr (std::is_floating_point_v<T>) {
      return value == 0 && !std::signbit(value);
    } else if constexpr (std::is_arithmetic_v<T>) {
      return value == T{};
    } else if constexpr (requires { value.empty(); }) {
      return value.empty();
    } else if constexpr (requires { value.has_value(); }) {
      return !value.has_value();
    } else {
      return false;
    }
  }
  template <typename List>
  void Elements(const List& values) {
    Open('[');
    for (const auto& value : values) {
      Separate();
      Value(value);
    }
    Close(']');
  }
  void String(absl::string_view value);
  void Open(char bracket) { text_ += bracket; }
  void Close(char bracket) { text_ += bracket; }
  void Separate() {
    if (!text_.empty() && text_.back() != '{' && text_.back() != '[') text_ += ',';
  }

  std::string text_;
};

// Any deviation makes ok() false for good; what was read by then is not to be used.
class JsonReader {
 public:
  explicit JsonReader(absl::string_view text) : at_(text.data()), end_(at_ + text.size()) {}

  template <typename T>
  void Field(absl::string_view name, T& value) {
    if (NextIs(name)) {
      Value(value);
    } else {
      value = T{};
    }
  }

  void Value(bool& value);
  void Value(int& value);
  void Value(int64_t& value);
  void Value(uint64_t& value);
  void Value(double& value);
  void Value(std::string& value);
  void Value(absl::Time& value);
  template <typename E>
  requires std::is_enum_v<E>
  void Value(E& value) {
    std::string word;
    Value(word);
    const std::optional<E> parsed = ParseWord<E>(word);
    if (parsed) {
      value = *parsed;
    } else {
      Fail();
    }
  }
  template <typename T>
  void Value(std::optional<T>& value) {
    Value(value.emplace());
  }
  template <typename T>
  void Value(std::vector<T>& values) {
    values.clear();
    Take('[');
    while (More(']')) Value(values.emplace_back());
  }
  template <typename T, size_t n>
  void Value(std::array<T, n>& values) {
    Take('[');
    for (T& value : values) {
      if (More(']')) Value(value);
    }
    if (More(']')) Fail();
  }
  template <typename T>
  void Value(std::map<std::string, T>& values) {
    values.clear();
    Take('{');
    while (More('}')) {
      std::string key;
      Value(key);
      Take(':');
      Value(values.emplace_hint(values.end(), std::move(key), T{})->second);
    }
  }
  template <typename T>
  requires std::is_class_v<T>
  void Value(T& value) {
    Take('{');
    Fields(*this, value);
    Take('}');
  }

  bool AtString() const { return at_ != end_ && *at_ == '"'; }
  bool ok() const { return ok_; }
  bool done() const { return ok_ && at_ == end_; }  // and nothing is left over
  void Fail() { ok_ = false; }

 private:
  template <typename T>
  void Number(T& value);
  bool NextIs(absl::string_view name);
  void Take(char c) {
    if (ok_ && at_ != end_ && *at_ == c) {
      ++at_;
      first_ = c == '{' || c == '[';
    } else {
      ok_ = false;
    }
  }
  // Before each element: false at the closing bracket, which it takes.
  bool More(char close);

  const char* at_;
  const char* end_;
  bool first_ = true;  // in the innermost bracket
  bool ok_ = true;
};

template <typename T>
std::string ToJson(const T& value) {
  JsonWriter writer;
  writer.Value(value);
  return writer.Take();
}

// False if the text is not what ToJson writes of such a value.
template <typename T>
bool FromJson(absl::string_view text, T* value) {
  JsonReader reader(text);
  reader.Value(*value);
  return reader.done();
}

}  // namespace kiln::db
