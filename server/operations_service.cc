// SPDX-License-Identifier: Apache-2.0
#include "server/operations_service.h"

#include <algorithm>
#include <utility>

#include "server/call_service.h"
#include "server/operation_filter.h"

namespace kiln::server {
namespace {

namespace lro = google::longrunning;

constexpr size_t kMaxPageBytes = 3'500'000;
constexpr int kPagesACall = 10;
constexpr absl::Duration kDefaultWait = absl::Seconds(60);
constexpr absl::Duration kLongestWait = absl::Hours(24);

// One WaitOperation: its call, its watch, its timer. Whoever comes first ends it.
struct Wait {
  std::shared_ptr<HeldUnary> call;
  std::mutex mutex;
  int64_t watch = 0, timer = 0;
  bool over = false;
};

}  // namespace

absl::Status OperationsService::Fill(const std::string& name, Message* response) {
  if (const auto stored = OperationMessages::StoredRecord(name)) {
    KILN_ASSIGN_OR_RETURN(const Record record, core_->store->GetRecord(*stored));
    return messages_->FillStored(name, record, nullptr, response);
  }
  KILN_ASSIGN_OR_RETURN(const JobTable::OperationView view, core_->jobs.GetOperation(name));
  return messages_->Fill(view, response);
}

grpc::ServerUnaryReactor* OperationsService::GetOperation(Context* context,
                                                          const lro::GetOperationRequest* request,
                                                          Message* response) {
  return Offload(core_, context, [=, this] { return Fill(request->name(), response); });
}

grpc::ServerUnaryReactor* OperationsService::ListOperations(
    Context* context, const lro::ListOperationsRequest* request,
    lro::ListOperationsResponse* response) {
  return Offload(core_, context, [=, this]() -> absl::Status {
    KILN_ASSIGN_OR_RETURN(const OperationFilter filter, ParseOperationFilter(request->filter()));
    KILN_ASSIGN_OR_RETURN(int size, PageSize(request->page_size()));
    std::string token = request->page_token();
    for (int pages = 1;; ++pages) {
      response->Clear();
      KILN_ASSIGN_OR_RETURN(const db::PageOf<Operation> page,
                            core_->store->ListOperations({size, token}));
      for (const Operation& operation : page.items) {
        const absl::StatusOr<Job> job = core_->jobs.GetJob(operation.job);
        // A damaged job is no reason to hide the others.
        if (!job.ok() || !Matches(filter, operation, *job)) continue;
        KILN_RETURN_IF_ERROR(messages_->Fill({operation, *job}, response->add_operations()));
      }
      response->set_next_page_token(page.next_token);
      // A filter that selects little: some pages on, before an empty one is sent with its token.
      if (response->operations().empty() && !page.next_token.empty() && pages < kPagesACall) {
        token = page.next_token;
        continue;
      }
      if (size == 1 || response->ByteSizeLong() <= kMaxPageBytes) return absl::OkStatus();
      size = std::max(1, size / 4);
    }
  });
}

grpc::ServerUnaryReactor* OperationsService::DeleteOperation(
    Context* context, const lro::DeleteOperationRequest* request, google::protobuf::Empty*) {
  return Offload(core_, context, [=, this]() -> absl::Status {
    if (OperationMessages::StoredRecord(request->name()))
      return absl::OkStatus();  // nothing was written for it
    return core_->jobs.DeleteOperation(request->name());
  });
}

grpc::ServerUnaryReactor* OperationsService::CancelOperation(
    Context* context, const lro::CancelOperationRequest* request, google::protobuf::Empty*) {
  return Offload(core_, context, [=, this]() -> absl::Status {
    if (OperationMessages::StoredRecord(request->name())) return absl::OkStatus();  // done
    return core_->jobs.CancelOperation(request->name());
  });
}

grpc::ServerUnaryReactor* OperationsService::WaitOperation(Context*,
                                                           const lro::WaitOperationRequest* request,
                                                           Message* response) {
  absl::Duration timeout = kDefaultWait;
  if (request->has_timeout()) {
    timeout =
        absl::Seconds(request->timeout().seconds()) + absl::Nanoseconds(request->timeout().nanos());
    timeout = std::clamp(timeout, absl::ZeroDuration(), kLongestWait);
  }
  auto wait = std::make_shared<Wait>();
  // Called when the call has ended, for whatever reason: nothing of it stays behind.
  const auto clean = [this, weak = std::weak_ptr<Wait>(wait)] {
    const auto self = weak.lock();
    if (self == nullptr) return;
    int64_t watch = 0, timer = 0;
    {
      std::lock_guard<std::mutex> lock(self->mutex);
      self->over = true;
      std::swap(watch, self->watch);
      std::swap(timer, self->timer);
    }
    if (watch != 0) core_->jobs.Unwatch(watch);
    if (timer != 0) core_->pool.CancelTimer(timer);
  };
  grpc::ServerUnaryReactor* reactor = nullptr;
  const std::shared_ptr<HeldUnary> call = HeldUnary::Start(core_, clean, &reactor);
  wait->call = call;
  // The request may go with the call, which others can end: the name is copied.
  core_->pool.Run([this, wait, name = request->name(), response, timeout] {
    const auto answer = [this, wait, name, response] {
      wait->call->Finish([&] { return Fill(name, response); });
    };
    if (OperationMessages::StoredRecord(name)) return answer();
    const auto watcher = [answer](const std::shared_ptr<const Job>&, bool done, bool) {
      if (done) answer();
    };
    JobTable::OperationView view;
    const absl::StatusOr<int64_t> watch =
        core_->jobs.Watch(name, /*every_change=*/false, watcher, &view);
    if (!watch.ok()) {
      wait->call->Finish(watch.status());
      return;
    }
    if (*watch == 0 || timeout == absl::ZeroDuration()) {
      if (*watch != 0) core_->jobs.Unwatch(*watch);
      return answer();
    }
    const int64_t timer = core_->pool.RunAfter(timeout, answer);
    bool over = false;
    {
      std::lock_guard<std::mutex> lock(wait->mutex);
      over = wait->over;
      wait->watch = *watch;
      wait->timer = timer;
    }
    if (!over) return;
    core_->jobs.Unwatch(*watch);
    core_->pool.CancelTimer(timer);
  });
  return reactor;
}

}  // namespace kiln::server
