// SPDX-License-Identifier: Apache-2.0
// Small parts that the wire_*.cc share: enums, bounds, maps, times. For them alone.
#pragma once

#include <cmath>
#include <map>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "google/protobuf/duration.pb.h"
#include "google/protobuf/timestamp.pb.h"
#include "proto/contract/error.h"

namespace kiln::wire {

// Every enum of the wire is the contract's shifted by one (0 is UNSPECIFIED); the .cc files assert
// it.
template <typename Wire, typename Value>
constexpr Wire EnumToWire(Value value) {
  return static_cast<Wire>(static_cast<int>(value) + 1);
}

template <typename Value>
absl::Status EnumFromWire(int wire, Value last, absl::string_view field, Value* value) {
  const int limit = static_cast<int>(last) + 1;
  if (wire < 1 || wire > limit) {
    return InvalidField("BAD_ENUM", field, absl::StrCat(wire),
                        wire == 0 ? "unspecified" : "no known value", absl::StrCat("1..", limit));
  }
  *value = static_cast<Value>(wire - 1);
  return absl::OkStatus();
}

inline absl::Status CheckCount(int64_t count, int64_t limit, absl::string_view field) {
  if (count <= limit) return absl::OkStatus();
  return InvalidField("TOO_MANY", field, absl::StrCat(count), "too many",
                      absl::StrCat("0..", limit));
}

inline absl::Status CheckSize(absl::string_view text, size_t limit, absl::string_view field) {
  if (text.size() <= limit) return absl::OkStatus();
  return InvalidField("TOO_LONG", field, absl::StrCat(text.size(), " bytes"), "too long",
                      absl::StrCat("0..", limit, " bytes"));
}

inline absl::Status CheckAtLeast(int64_t value, int64_t least, absl::string_view field) {
  if (value >= least) return absl::OkStatus();
  return InvalidField("OUT_OF_RANGE", field, absl::StrCat(value), "too small",
                      absl::StrCat(">= ", least));
}

// Times, ratios and errors: never NaN, infinite or negative.
inline absl::Status CheckQuantity(double value, absl::string_view field) {
  if (std::isfinite(value) && value >= 0) return absl::OkStatus();
  return InvalidField("OUT_OF_RANGE", field, absl::StrCat(value), "no quantity", "finite and >= 0");
}

template <typename K, typename V, typename WireMap>
void MapToWire(const std::map<K, V>& from, WireMap* to) {
  to->clear();
  for (const auto& [key, value] : from) (*to)[key] = value;
}

template <typename V, typename WireMap>
absl::Status MapFromWire(const WireMap& from, int64_t limit, absl::string_view field,
                         std::map<std::string, V>* to) {
  KILN_RETURN_IF_ERROR(CheckCount(from.size(), limit, field));
  for (const auto& [key, value] : from) (*to)[key] = value;
  return absl::OkStatus();
}

// The epoch means "not yet" in the contract and absence on the wire.
inline void TimeToWire(absl::Time time, google::protobuf::Timestamp* message) {
  const timespec spec = absl::ToTimespec(time);
  message->set_seconds(spec.tv_sec);
  message->set_nanos(static_cast<int32_t>(spec.tv_nsec));
}
inline absl::Time TimeFromWire(const google::protobuf::Timestamp& message) {
  return absl::FromUnixSeconds(message.seconds()) + absl::Nanoseconds(message.nanos());
}
inline bool IsSet(absl::Time time) { return time != absl::Time(); }

// To the nearest nanosecond: what is cut off instead would be lost anew on each way.
inline void DurationToWire(double seconds, google::protobuf::Duration* message) {
  const absl::Duration duration = absl::Seconds(seconds) + absl::Nanoseconds(0.5);
  absl::Duration rest;
  message->set_seconds(absl::IDivDuration(duration, absl::Seconds(1), &rest));
  message->set_nanos(static_cast<int32_t>(absl::ToInt64Nanoseconds(rest)));
}
inline double DurationFromWire(const google::protobuf::Duration& message) {
  return static_cast<double>(message.seconds()) + 1e-9 * message.nanos();
}

}  // namespace kiln::wire
