// SPDX-License-Identifier: Apache-2.0
// A clock that tests turn. Thread-safe.
#pragma once

#include <mutex>

#include "absl/time/time.h"
#include "server/clock.h"

namespace kiln::server {

class FakeClock final : public Clock {
 public:
  absl::Time Now() const override {
    std::lock_guard<std::mutex> lock(mutex_);
    return now_;
  }
  void Advance(absl::Duration by) {
    std::lock_guard<std::mutex> lock(mutex_);
    now_ += by;
  }

 private:
  mutable std::mutex mutex_;
  absl::Time now_ = absl::FromUnixSeconds(1'900'000'000);
};

}  // namespace kiln::server
