// SPDX-License-Identifier: Apache-2.0
// Calls that stay open (waits, watches, polls): counted, bounded, and ended all at once at the
// server's stop, since gRPC's Shutdown waits for them for ever. Knows no gRPC. Thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "proto/contract/error.h"

namespace kiln::server {

class HeldCalls {
 public:
  // Ends the call with the status; may be called when it has ended already.
  using End = std::function<void(const absl::Status&)>;

  explicit HeldCalls(int64_t limit) : limit_(limit) {}

  // The id that Remove takes. RESOURCE_EXHAUSTED (HELD_CALLS_FULL) at the limit; what EndAll was
  // given, once it was called.
  absl::StatusOr<int64_t> Add(End end) {
    std::lock_guard<std::mutex> lock(mutex_);
    if (!ended_.ok()) return ended_;
    if (static_cast<int64_t>(calls_.size()) >= limit_) {
      return MakeError(
          absl::StatusCode::kResourceExhausted,
          absl::StrCat("the server holds ", limit_,
                       " open calls, as many as it may; ask again later"),
          {"HELD_CALLS_FULL", {{"limit", absl::StrCat(limit_)}, {"retry_after_seconds", "5"}}});
    }
    calls_[++last_] = std::move(end);
    return last_;
  }

  void Remove(int64_t id) {
    End dropped;  // destroyed without the lock
    std::lock_guard<std::mutex> lock(mutex_);
    const auto it = calls_.find(id);
    if (it == calls_.end()) return;
    dropped = std::move(it->second);
    calls_.erase(it);
  }

  void EndAll(const absl::Status& status) {
    std::map<int64_t, End> calls;
    {
      std::lock_guard<std::mutex> lock(mutex_);
      ended_ = status;
      calls.swap(calls_);
    }
    for (const auto& [id, end] : calls) end(status);
  }

  int64_t size() const {
    std::lock_guard<std::mutex> lock(mutex_);
    return static_cast<int64_t>(calls_.size());
  }

 private:
  const int64_t limit_;
  mutable std::mutex mutex_;
  std::map<int64_t, End> calls_;
  int64_t last_ = 0;
  absl::Status ended_;
};

}  // namespace kiln::server
