// SPDX-License-Identifier: Apache-2.0
// Where the server's decisions get the time from, so that tests can turn it.
#pragma once

#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace kiln::server {

class Clock {
 public:
  virtual ~Clock() = default;
  virtual absl::Time Now() const = 0;
};

class SystemClock final : public Clock {
 public:
  absl::Time Now() const override { return absl::Now(); }
};

}  // namespace kiln::server
