// SPDX-License-Identifier: Apache-2.0
#include "worker/message.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"

namespace kiln::worker {
namespace {

// Until `events`, the deadline or a cancel.
absl::Status Await(int descriptor, short events, absl::Time deadline, const CancelToken* cancel) {
  while (true) {
    if (cancel != nullptr && cancel->cancelled()) return absl::CancelledError("cancelled");
    int timeout = -1;
    if (deadline != absl::InfiniteFuture()) {
      const int64_t left = absl::ToInt64Milliseconds(deadline - absl::Now());
      if (left < 0) return absl::DeadlineExceededError("the time is up");
      timeout = static_cast<int>(std::min<int64_t>(left + 1, 1 << 30));
    }
    pollfd waits[2] = {{descriptor, events, 0},
                       {cancel != nullptr ? cancel->descriptor() : -1, POLLIN, 0}};
    if (poll(waits, 2, timeout) < 0 && errno != EINTR) return absl::UnavailableError("poll failed");
    if (waits[0].revents != 0) return absl::OkStatus();
  }
}

absl::Status ReadExactly(int descriptor, char* data, size_t size, absl::Time deadline,
                         const CancelToken* cancel) {
  while (size > 0) {
    if (absl::Status ready = Await(descriptor, POLLIN, deadline, cancel); !ready.ok()) return ready;
    const ssize_t got = read(descriptor, data, size);
    if (got < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (got <= 0) return absl::UnavailableError("the other end is gone");
    data += got;
    size -= got;
  }
  return absl::OkStatus();
}

}  // namespace

std::string Reader::Text() {
  const int64_t size = Integer();
  if (!ok_ || size < 0 || static_cast<uint64_t>(size) > rest_.size()) {
    ok_ = false;
    return "";
  }
  std::string text(rest_.substr(0, size));
  rest_.remove_prefix(size);
  return text;
}

int64_t Reader::Count() {
  const int64_t count = Integer();
  if (count >= 0 && static_cast<uint64_t>(count) <= rest_.size() / sizeof(int64_t)) return count;
  ok_ = false;
  return 0;
}

absl::Status SendFrame(int descriptor, const Frame& frame, absl::Time deadline,
                       const CancelToken* cancel) {
  FrameHeader header;
  header.type = frame.type;
  header.bytes = frame.payload.size();
  std::string bytes(reinterpret_cast<const char*>(&header), sizeof header);
  bytes += frame.payload;
  absl::string_view rest = bytes;
  while (!rest.empty()) {
    if (absl::Status ready = Await(descriptor, POLLOUT, deadline, cancel); !ready.ok())
      return ready;
    const ssize_t put = write(descriptor, rest.data(), rest.size());
    if (put < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (put < 0) return absl::UnavailableError("the other end is gone");
    rest.remove_prefix(put);
  }
  return absl::OkStatus();
}

absl::StatusOr<Frame> ReceiveFrame(int descriptor, absl::Time deadline, const CancelToken* cancel) {
  FrameHeader header;
  if (absl::Status s = ReadExactly(descriptor, reinterpret_cast<char*>(&header), sizeof header,
                                   deadline, cancel);
      !s.ok()) {
    return s;
  }
  if (header.magic != FrameHeader{}.magic || header.bytes > kMaxFrameBytes) {
    return absl::UnavailableError("the other end sends no frames");
  }
  Frame frame{header.type, std::string(header.bytes, '\0')};
  if (absl::Status s =
          ReadExactly(descriptor, frame.payload.data(), frame.payload.size(), deadline, cancel);
      !s.ok())
    return s;
  return frame;
}

}  // namespace kiln::worker
