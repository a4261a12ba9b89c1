// SPDX-License-Identifier: Apache-2.0
#include "server/call_service.h"

#include <algorithm>

namespace kiln::server {

grpc::ServerUnaryReactor* Offload(Core* core, grpc::CallbackServerContext* context,
                                  std::function<absl::Status()> work) {
  auto* reactor = context->DefaultReactor();
  if (core->pool.depth() >= core->options.max_queued_calls) {
    reactor->Finish(
        wire::ToGrpc(MakeError(absl::StatusCode::kResourceExhausted,
                               "the server has as many calls in work as it may; ask again later",
                               {"OVERLOADED", {{"retry_after_seconds", "2"}}})));
    return reactor;
  }
  core->pool.Run([reactor, work = std::move(work)] { reactor->Finish(wire::ToGrpc(work())); });
  return reactor;
}

std::string ClientOf(const grpc::CallbackServerContext& context) {
  const auto& metadata = context.client_metadata();
  if (const auto it = metadata.find("kiln-client"); it != metadata.end() && !it->second.empty()) {
    return std::string(it->second.data(), std::min<size_t>(it->second.size(), 256));
  }
  std::string peer = context.peer();
  const bool has_port = peer.rfind("ipv4:", 0) == 0 || peer.rfind("ipv6:", 0) == 0;
  return has_port ? peer.substr(0, peer.find_last_of(':')) : peer;
}

class HeldUnary::Reactor final : public grpc::ServerUnaryReactor {
 public:
  explicit Reactor(std::shared_ptr<HeldUnary> held) : held_(std::move(held)) {}
  void OnCancel() override { held_->Finish(absl::CancelledError("the caller went away")); }
  void OnDone() override { delete this; }

 private:
  const std::shared_ptr<HeldUnary> held_;
};

std::shared_ptr<HeldUnary> HeldUnary::Start(Core* core, std::function<void()> on_end,
                                            grpc::ServerUnaryReactor** reactor) {
  auto held = std::make_shared<HeldUnary>();
  held->core_ = core;
  held->on_end_ = std::move(on_end);
  held->reactor_ = new Reactor(held);
  *reactor = held->reactor_;
  const absl::StatusOr<int64_t> id =
      core->held.Add([weak = std::weak_ptr<HeldUnary>(held)](const absl::Status& status) {
        if (const auto call = weak.lock()) call->Finish(status);
      });
  bool finished = false;
  if (id.ok()) {
    std::lock_guard<std::mutex> lock(held->mutex_);
    held->held_ = *id;
    finished = held->reactor_ == nullptr;  // the server's stop was quicker
  }
  if (!id.ok()) held->Finish(id.status());
  if (finished) core->held.Remove(*id);
  return held;
}

bool HeldUnary::Finish(const std::function<absl::Status()>& fill) {
  Reactor* reactor = nullptr;
  int64_t id = 0;
  std::function<void()> on_end;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (reactor_ == nullptr) return false;
    std::swap(reactor, reactor_);
    id = held_;
    on_end.swap(on_end_);
  }
  // Messages and reactor live until Finish, which only the one who took the reactor calls.
  const grpc::Status status = wire::ToGrpc(fill());
  if (id != 0) core_->held.Remove(id);
  reactor->Finish(status);
  if (on_end) on_end();
  return true;
}

absl::StatusOr<int> PageSize(int32_t size) {
  if (size < 0) {
    return InvalidField("OUT_OF_RANGE", "page_size", absl::StrCat(size), "negative",
                        "0 (the default) to 1000");
  }
  return size == 0 ? 100 : std::min(size, 1000);
}

}  // namespace kiln::server
