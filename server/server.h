// SPDX-License-Identifier: Apache-2.0
// A running server in one object, for main and for tests: core, services, listener, metrics; and
// its orderly stop.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "server/core.h"

namespace kiln::server {

class Server {
 public:
  // Listens when it returns. `store` and `clock` outlive it. UNAVAILABLE (ADDRESS_IN_USE): the
  // address cannot be had. Codes of the store.
  static absl::StatusOr<std::unique_ptr<Server>> Start(const Options& options, db::Store* store,
                                                       const Clock* clock, FamilyMatcher match);
  virtual ~Server() = default;  // stops, if Stop was not called

  virtual const std::string& address() const = 0;  // with the real port
  virtual int metrics_port() const = 0;            // 0: none
  // Takes no new work, answers every held call with UNAVAILABLE and RetryInfo, lets calls in flight
  // end within the drain time, and persists the time used. Jobs and leases stay as they are:
  // workers find them again.
  virtual void Stop() = 0;
  virtual Core* core() = 0;  // for tests
};

}  // namespace kiln::server
