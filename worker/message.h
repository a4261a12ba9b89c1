// SPDX-License-Identifier: Apache-2.0
// Frames between the worker and its bench child: a type and a payload of fields, written and read
// in the same order. Both ends are one binary, so there are no versions; what a broken child sends
// is still checked, since it ran foreign code.
#pragma once

#include <cstdint>
#include <cstring>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "worker/compile/cancel.h"

namespace kiln::worker {

struct FrameHeader {
  uint32_t type = 0;
  uint32_t magic = 0x4b696c6e;
  uint64_t bytes = 0;
};
inline constexpr uint64_t kMaxFrameBytes = uint64_t{1} << 30;

struct Frame {
  uint32_t type = 0;
  std::string payload;
};

class Writer {
 public:
  Writer& Integer(int64_t value) { return Raw(&value, sizeof value); }
  Writer& Number(double value) { return Raw(&value, sizeof value); }
  Writer& Text(absl::string_view text) {
    return Integer(static_cast<int64_t>(text.size())).Raw(text.data(), text.size());
  }
  const std::string& bytes() const { return bytes_; }

 private:
  Writer& Raw(const void* data, size_t size) {
    bytes_.append(static_cast<const char*>(data), size);
    return *this;
  }
  std::string bytes_;
};

// Zero and empty once the payload is used up or malformed; ok() says whether all was there and
// nothing is left.
class Reader {
 public:
  explicit Reader(absl::string_view bytes) : rest_(bytes) {}
  int64_t Integer() { return Raw<int64_t>(); }
  double Number() { return Raw<double>(); }
  std::string Text();
  int64_t Count();  // of things that follow, each at least one field long
  bool ok() const { return ok_ && rest_.empty(); }

 private:
  template <typename T>
  T Raw() {
    T value{};
    if (rest_.size() < sizeof value) {
      ok_ = false;
      return value;
    }
    memcpy(&value, rest_.data(), sizeof value);
    rest_.remove_prefix(sizeof value);
    return value;
  }
  absl::string_view rest_;
  bool ok_ = true;
};

// Whole frames over a descriptor. DEADLINE_EXCEEDED, CANCELLED (`cancel` may be null) and
// UNAVAILABLE: the other end is gone, or what it sends is no frame.
absl::Status SendFrame(int descriptor, const Frame& frame, absl::Time deadline,
                       const CancelToken* cancel);
absl::StatusOr<Frame> ReceiveFrame(int descriptor, absl::Time deadline, const CancelToken* cancel);

}  // namespace kiln::worker
