// SPDX-License-Identifier: Apache-2.0
// The Prometheus text endpoint. Reads the counters when it is asked; names and meanings: README.md.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "server/core.h"

namespace kiln::server {

class MetricsEndpoint {
 public:
  // UNAVAILABLE: the address cannot be had. `core` outlives it.
  static absl::StatusOr<std::unique_ptr<MetricsEndpoint>> Start(const std::string& address,
                                                                Core* core);
  virtual ~MetricsEndpoint() = default;
  virtual int port() const = 0;
};

}  // namespace kiln::server
