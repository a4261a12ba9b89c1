// SPDX-License-Identifier: Apache-2.0
// WatchOperation: the operation now and at each change, not more often than the caller's interval,
// until it is done. A closed stream withdraws nothing.
#include <algorithm>
#include <mutex>
#include <optional>
#include <utility>

#include "google/longrunning/operations.pb.h"
#include "server/call_service.h"
#include "server/kiln_service.h"

namespace kiln::server {
namespace {

using google::longrunning::Operation;
using WriteReactor = grpc::ServerWriteReactor<Operation>;

constexpr double kDefaultIntervalSeconds = 0.2;
constexpr double kLeastIntervalSeconds = 0.02;
constexpr double kMostIntervalSeconds = 60;
// A queued job changes its place without a change of its own: look again this often.
constexpr absl::Duration kIdleLook = absl::Seconds(2);

// One stream. State machine: idle -> (change or timer) -> building and writing -> idle ... ->
// finished. At most one write is under way; changes meanwhile are folded into the next message.
// Shared by the reactor, the watch and timers.
class WatchStream : public std::enable_shared_from_this<WatchStream> {
 public:
  static WriteReactor* Start(Core* core, OperationMessages* messages, std::string name,
                             absl::Duration interval);

 private:
  class Reactor;
  WatchStream(Core* core, OperationMessages* messages, std::string name, absl::Duration interval)
      : core_(core), messages_(messages), name_(std::move(name)), interval_(interval) {}

  void Begin();    // on the pool: subscribes, sends the first state
  void Changed();  // something is new: send now, or when the interval is over
  void Look();     // on the pool: reads the state and writes it
  void Written(bool ok);
  void Finish(const absl::Status& status);  // once

  Core* const core_;
  OperationMessages* const messages_;
  const std::string name_;
  const absl::Duration interval_;
  std::mutex mutex_;
  Reactor* reactor_ = nullptr;  // null once finished
  int64_t watch_ = 0, held_ = 0;
  Operation message_;  // of the write under way
  bool writing_ = false, pending_ = false, timer_set_ = false, last_ = false;
  bool look_again_ = false;  // the timer is the idle one
  absl::Time sent_;
};

class WatchStream::Reactor final : public WriteReactor {
 public:
  explicit Reactor(std::shared_ptr<WatchStream> stream) : stream_(std::move(stream)) {}
  void OnWriteDone(bool ok) override { stream_->Written(ok); }
  void OnCancel() override { stream_->Finish(absl::CancelledError("the caller went away")); }
  void OnDone() override { delete this; }

 private:
  const std::shared_ptr<WatchStream> stream_;
};

WriteReactor* WatchStream::Start(Core* core, OperationMessages* messages, std::string name,
                                 absl::Duration interval) {
  std::shared_ptr<WatchStream> stream(new WatchStream(core, messages, std::move(name), interval));
  auto* reactor = new Reactor(stream);
  stream->reactor_ = reactor;
  const absl::StatusOr<int64_t> held =
      core->held.Add([weak = std::weak_ptr<WatchStream>(stream)](const absl::Status& status) {
        if (const auto open = weak.lock()) open->Finish(status);
      });
  if (!held.ok()) {
    stream->Finish(held.status());
    return reactor;
  }
  {
    std::lock_guard<std::mutex> lock(stream->mutex_);
    stream->held_ = *held;
  }
  core->pool.Run([stream] { stream->Begin(); });
  return reactor;
}

void WatchStream::Begin() {
  if (OperationMessages::StoredRecord(name_)) return Look();
  JobTable::OperationView view;
  const auto watcher = [weak = weak_from_this()](const std::shared_ptr<const Job>&, bool, bool) {
    if (const auto stream = weak.lock()) stream->Changed();
  };
  const absl::StatusOr<int64_t> id =
      core_->jobs.Watch(name_, /*every_change=*/true, watcher, &view);
  if (!id.ok()) return Finish(id.status());
  bool finished = false;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    finished = reactor_ == nullptr;
    watch_ = *id;
  }
  if (finished) return core_->jobs.Unwatch(*id);
  Changed();
}

void WatchStream::Changed() {
  absl::Duration wait = absl::ZeroDuration();
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (reactor_ == nullptr || last_) return;
    if (writing_) {
      pending_ = true;
      return;
    }
    if (timer_set_ && !look_again_) return;  // the timer will look
    wait = sent_ + interval_ - core_->clock->Now();
    if (wait <= absl::ZeroDuration()) {
      writing_ = true;
    } else {
      timer_set_ = true;
      look_again_ = false;
    }
  }
  if (wait <= absl::ZeroDuration()) {
    core_->pool.Run([self = shared_from_this()] { self->Look(); });
    return;
  }
  core_->pool.RunAfter(wait, [weak = weak_from_this()] {
    const auto self = weak.lock();
    if (self == nullptr) return;
    {
      std::lock_guard<std::mutex> lock(self->mutex_);
      self->timer_set_ = false;
    }
    self->Changed();
  });
}

void WatchStream::Look() {
  Operation now;
  absl::Status status;
  if (const auto stored = OperationMessages::StoredRecord(name_)) {
    const absl::StatusOr<Record> record = core_->store->GetRecord(*stored);
    status = record.ok() ? messages_->FillStored(name_, *record, nullptr, &now) : record.status();
  } else {
    const auto view = core_->jobs.GetOperation(name_);
    status = view.ok() ? messages_->Fill(*view, &now) : view.status();
  }
  if (!status.ok()) return Finish(status);
  std::lock_guard<std::mutex> lock(mutex_);
  if (reactor_ == nullptr) return;
  message_ = std::move(now);
  writing_ = true;
  last_ = message_.done();
  sent_ = core_->clock->Now();
  // Under the lock: Finish may not come between.
  reactor_->StartWrite(&message_);
}

void WatchStream::Written(bool ok) {
  bool again = false, idle = false, last = false;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    writing_ = false;
    last = last_;
    again = std::exchange(pending_, false) && !last_;
    idle = ok && !again && !last_ && !timer_set_;
    if (idle) timer_set_ = look_again_ = true;
  }
  if (!ok) return Finish(absl::CancelledError("the caller went away"));
  if (last) return Finish(absl::OkStatus());
  if (again) return Changed();
  if (!idle) return;
  core_->pool.RunAfter(std::max(kIdleLook, interval_), [weak = weak_from_this()] {
    const auto self = weak.lock();
    if (self == nullptr) return;
    {
      std::lock_guard<std::mutex> lock(self->mutex_);
      if (!self->look_again_) return;  // a change came first and has its own timer
      self->timer_set_ = self->look_again_ = false;
    }
    self->Changed();
  });
}

void WatchStream::Finish(const absl::Status& status) {
  Reactor* reactor = nullptr;
  int64_t watch = 0, held = 0;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (reactor_ == nullptr) return;
    std::swap(reactor, reactor_);
    watch = watch_;
    held = held_;
  }
  if (watch != 0) core_->jobs.Unwatch(watch);
  if (held != 0) core_->held.Remove(held);
  reactor->Finish(wire::ToGrpc(status));
}

}  // namespace

WriteReactor* KilnService::WatchOperation(Context*, const v1::WatchOperationRequest* request) {
  double seconds = kDefaultIntervalSeconds;
  if (request->has_interval()) {
    seconds =
        static_cast<double>(request->interval().seconds()) + 1e-9 * request->interval().nanos();
  }
  seconds = std::clamp(seconds, kLeastIntervalSeconds, kMostIntervalSeconds);
  return WatchStream::Start(core_, messages_, request->name(), absl::Seconds(seconds));
}

}  // namespace kiln::server
