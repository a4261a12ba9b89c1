// SPDX-License-Identifier: Apache-2.0
// What the services' handlers share: work moved off gRPC's threads, calls that are held open and
// ended exactly once, who the client is.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "grpcpp/server_context.h"
#include "grpcpp/support/server_callback.h"
#include "proto/wire.h"
#include "server/core.h"

namespace kiln::server {

// Runs `work` on the pool and finishes the call with its status. The call's messages live until
// then.
grpc::ServerUnaryReactor* Offload(Core* core, grpc::CallbackServerContext* context,
                                  std::function<absl::Status()> work);

// Metadata "kiln-client", else the peer's address without its port: for fairness and for
// request_id.
std::string ClientOf(const grpc::CallbackServerContext& context);

// A unary call that is answered later, by whoever comes first: an event, a timer, the caller's
// cancellation, the server's stop. Shared by all of them; Finish works once.
class HeldUnary : public std::enable_shared_from_this<HeldUnary> {
 public:
  // Starts to hold; the reactor is what the handler returns. `on_end` is called once, after the
  // call was finished, without locks.
  static std::shared_ptr<HeldUnary> Start(Core* core, std::function<void()> on_end,
                                          grpc::ServerUnaryReactor** reactor);
  // If this is the first: calls `fill`, which writes the response, and finishes with its status.
  // Returns whether it was.
  bool Finish(const std::function<absl::Status()>& fill);
  bool Finish(const absl::Status& status) {
    return Finish([&] { return status; });
  }

 private:
  class Reactor;
  Core* core_ = nullptr;
  std::function<void()> on_end_;
  std::mutex mutex_;
  Reactor* reactor_ = nullptr;  // null once finished
  int64_t held_ = 0;
};

// "size" of a page request: negative is an error, 0 means 100, beyond 1000 is 1000.
absl::StatusOr<int> PageSize(int32_t size);

}  // namespace kiln::server
