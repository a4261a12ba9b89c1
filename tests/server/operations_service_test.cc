// SPDX-License-Identifier: Apache-2.0
// google.longrunning.Operations, WatchOperation, restarts and the server's stop.
#include <gmock/gmock.h>

#include <atomic>
#include <thread>

#include "proto/wire.h"
#include "tests/server/service_fixture.h"

namespace kiln::server {
namespace {

class OperationsTest : public ServiceTest {
 protected:
  v1::WatchOperationRequest WatchRequest(const std::string& name) {
    v1::WatchOperationRequest request;
    request.set_name(name);
    request.mutable_interval()->set_nanos(20'000'000);
    return request;
  }
};

TEST_F(OperationsTest, AWaitThatRunsOutLeavesTheJobAlone) {
  const auto worker = MakeWorker();
  const auto operation = Tune(TuneRequest());
  const auto waited = Wait(operation->name(), 0.05);
  ASSERT_TRUE(waited.ok()) << waited.status();
  EXPECT_FALSE(waited->done());
  // A caller's own deadline, too.
  lro::WaitOperationRequest request;
  lro::Operation message;
  request.set_name(operation->name());
  request.mutable_timeout()->set_seconds(30);
  EXPECT_EQ(
      operations_->WaitOperation(Context("alice", 0.05).get(), request, &message).error_code(),
      grpc::StatusCode::DEADLINE_EXCEEDED);
  EXPECT_FALSE(GetOperation(operation->name())->done());
  EXPECT_TRUE(worker->RunOne().ok());
  EXPECT_TRUE(Wait(operation->name(), 5)->done());
}

TEST_F(OperationsTest, UnknownNamesAreNamed) {
  for (const absl::Status& status :
       {GetOperation("operations/none").status(), Wait("operations/none", 1).status(),
        Cancel("operations/none")}) {
    EXPECT_TRUE(absl::IsNotFound(status)) << status;
    EXPECT_THAT(std::string(status.message()), ::testing::HasSubstr("operations/none"));
  }
}

TEST_F(OperationsTest, CancellingOneOfManyEndsItAloneAndTheLastStopsTheWorker) {
  const auto worker = MakeWorker();
  const auto a = Tune(TuneRequest()), b = Tune(TuneRequest(), "bob");
  const auto lease = worker->Poll();
  ASSERT_TRUE(lease->has_lease());
  std::atomic<bool> woken{false};
  std::thread waiter([&] {
    const auto done = Wait(a->name(), 30);
    EXPECT_EQ(done->error().code(), static_cast<int>(absl::StatusCode::kCancelled));
    woken = true;
  });
  ASSERT_TRUE(Cancel(a->name()).ok());
  waiter.join();
  EXPECT_TRUE(woken);
  EXPECT_FALSE(GetOperation(b->name())->done());
  EXPECT_FALSE(worker->Heartbeat(lease->lease())->cancel());
  ASSERT_TRUE(Cancel(b->name()).ok());
  EXPECT_TRUE(worker->Heartbeat(lease->lease())->cancel());
  EXPECT_TRUE(worker->Report(lease->lease(), {Measured(0)}).ok());
  EXPECT_TRUE(
      absl::IsAborted(worker->Complete(lease->lease(), worker->RecordOf(lease->lease())).status()));
}

TEST_F(OperationsTest, DeletedIsGoneAndUndoneIsNotDeleted) {
  const auto worker = MakeWorker();
  const auto operation = Tune(TuneRequest());
  lro::DeleteOperationRequest request;
  google::protobuf::Empty empty;
  request.set_name(operation->name());
  const grpc::Status refused = operations_->DeleteOperation(Context().get(), request, &empty);
  EXPECT_EQ(ReasonOf(wire::FromGrpc(refused)), "OPERATION_NOT_DONE");
  ASSERT_TRUE(worker->RunOne().ok());
  EXPECT_TRUE(operations_->DeleteOperation(Context().get(), request, &empty).ok());
  EXPECT_TRUE(absl::IsNotFound(GetOperation(operation->name()).status()));
}

TEST_F(OperationsTest, ListsAreCompleteOverTheirPages) {
  const auto worker = MakeWorker();
  std::set<std::string> want, got;
  for (int i = 0; i < 25; ++i) want.insert(Tune(TuneRequest(64 + i))->name());
  lro::ListOperationsRequest request;
  lro::ListOperationsResponse response;
  request.set_page_size(10);
  int pages = 0;
  do {
    ASSERT_TRUE(operations_->ListOperations(Context().get(), request, &response).ok());
    for (const auto& operation : response.operations())
      EXPECT_TRUE(got.insert(operation.name()).second);
    request.set_page_token(response.next_page_token());
    ++pages;
  } while (!response.next_page_token().empty());
  EXPECT_EQ(got, want);
  EXPECT_EQ(pages, 3);
  request.set_page_size(-1);
  EXPECT_EQ(
      DetailOf(wire::FromGrpc(operations_->ListOperations(Context().get(), request, &response)),
               "field"),
      "page_size");
  request.set_page_size(0);
  request.set_page_token("nonsense");
  EXPECT_EQ(operations_->ListOperations(Context().get(), request, &response).error_code(),
            grpc::StatusCode::INVALID_ARGUMENT);
}

TEST_F(OperationsTest, AFilterSelectsAndABadOneIsRefused) {
  const auto worker = MakeWorker();
  std::vector<std::string> names;
  for (int i = 0; i < 5; ++i) names.push_back(Tune(TuneRequest(64 + i))->name());
  lro::CancelOperationRequest cancel;
  google::protobuf::Empty empty;
  cancel.set_name(names[3]);
  ASSERT_TRUE(operations_->CancelOperation(Context().get(), cancel, &empty).ok());
  // Pages that hold nothing of what is wanted are passed over.
  lro::ListOperationsRequest request;
  lro::ListOperationsResponse response;
  request.set_page_size(1);
  request.set_filter("done = true");
  std::vector<std::string> got;
  do {
    ASSERT_TRUE(operations_->ListOperations(Context().get(), request, &response).ok());
    for (const auto& operation : response.operations()) got.push_back(operation.name());
    request.set_page_token(response.next_page_token());
  } while (!response.next_page_token().empty());
  EXPECT_EQ(got, std::vector<std::string>{names[3]});
  request.set_page_token("");
  request.set_filter("state = lost");
  const absl::Status refused =
      wire::FromGrpc(operations_->ListOperations(Context().get(), request, &response));
  EXPECT_TRUE(absl::IsInvalidArgument(refused));
  EXPECT_EQ(ReasonOf(refused), "BAD_FILTER");
}

TEST_F(OperationsTest, AWatchShowsTheStateNowItsChangesAndTheEnd) {
  const auto worker = MakeWorker();
  const auto operation = Tune(TuneRequest());
  auto context = Context();
  auto stream = kiln_->WatchOperation(context.get(), WatchRequest(operation->name()));
  lro::Operation message;
  ASSERT_TRUE(stream->Read(&message));
  EXPECT_EQ(JobOf(message).state(), v1::JOB_STATE_QUEUED);
  EXPECT_EQ(JobOf(message).progress().queue_position(), 1);
  const auto lease = worker->Poll();
  ASSERT_TRUE(lease->has_lease());
  ASSERT_TRUE(worker->Heartbeat(lease->lease(), "searching", 7).ok());
  int64_t done = 0;
  while (done < 7 && stream->Read(&message)) {
    EXPECT_GE(JobOf(message).progress().done(), done) << "numbers never fall";
    done = JobOf(message).progress().done();
  }
  EXPECT_EQ(done, 7);
  ASSERT_TRUE(worker->Upload(CompiledKernel()).ok());
  ASSERT_TRUE(worker->Upload(KernelSource()).ok());
  ASSERT_TRUE(worker->Complete(lease->lease(), worker->RecordOf(lease->lease())).ok());
  while (!message.done() && stream->Read(&message)) {
  }
  EXPECT_TRUE(message.done());
  EXPECT_FALSE(stream->Read(&message)) << "the stream ends with the operation";
  EXPECT_TRUE(stream->Finish().ok());
}

TEST_F(OperationsTest, AClosedWatchWithdrawsNothingAndLeavesNothingBehind) {
  const auto worker = MakeWorker();
  const auto operation = Tune(TuneRequest());
  {
    auto context = Context();
    auto stream = kiln_->WatchOperation(context.get(), WatchRequest(operation->name()));
    lro::Operation message;
    ASSERT_TRUE(stream->Read(&message));
    context->TryCancel();
    EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::CANCELLED);
  }
  Await([&] { return server_->core()->held.size() == 0; }, "the call is forgotten");
  for (const auto& [device, depth] : server_->core()->jobs.DepthByDevice())
    EXPECT_EQ(depth.watchers, 0);
  EXPECT_EQ(GetOperation(operation->name())->done(), false);
}

TEST_F(OperationsTest, AWatchOfACancelledOperationEnds) {
  const auto worker = MakeWorker();
  const auto operation = Tune(TuneRequest());
  ASSERT_TRUE(Tune(TuneRequest(), "bob").ok());
  auto context = Context();
  auto stream = kiln_->WatchOperation(context.get(), WatchRequest(operation->name()));
  lro::Operation message;
  ASSERT_TRUE(stream->Read(&message));
  ASSERT_TRUE(Cancel(operation->name()).ok());
  while (stream->Read(&message)) {
  }
  EXPECT_TRUE(message.done());
  EXPECT_EQ(message.error().code(), static_cast<int>(absl::StatusCode::kCancelled));
  EXPECT_TRUE(stream->Finish().ok());
}

TEST_F(OperationsTest, TheStopAnswersHeldCallsWithUnavailableAndARestartGoesOn) {
  auto worker = MakeWorker();
  const auto running = Tune(TuneRequest());
  const auto lease = worker->Poll();
  ASSERT_TRUE(lease->has_lease());
  const auto queued = Tune(TuneRequest(65));
  std::atomic<int> refused{0};
  std::vector<std::thread> waiters;
  for (int i = 0; i < 20; ++i) {
    waiters.emplace_back([&, i] {
      const auto answer = i % 2 == 0 ? Wait(queued->name(), 60).status() : [&] {
        auto context = Context();
        auto stream = kiln_->WatchOperation(context.get(), WatchRequest(running->name()));
        lro::Operation message;
        while (stream->Read(&message)) {
        }
        return wire::FromGrpc(stream->Finish());
      }();
      EXPECT_TRUE(absl::IsUnavailable(answer)) << answer;
      refused += !DetailOf(answer, "retry_after_seconds").empty();
    });
  }
  auto idle = MakeWorker("workers/idle", 4);
  waiters.emplace_back([&] { EXPECT_TRUE(absl::IsUnavailable(idle->Poll(60).status())); });
  Await([&] { return server_->core()->held.size() == 21; }, "all are held");
  StopServer();
  for (std::thread& waiter : waiters) waiter.join();
  EXPECT_EQ(refused, 20);

  StartServer();
  EXPECT_FALSE(GetOperation(queued->name())->done());
  worker = std::make_unique<FakeWorker>(channel_, "workers/a");
  const auto back = worker->Register(lease->lease().job(), lease->lease().epoch());
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_TRUE(back->keep_lease());
  EXPECT_TRUE(worker->Heartbeat(lease->lease()).ok());
  ASSERT_TRUE(worker->Upload(CompiledKernel()).ok());
  ASSERT_TRUE(worker->Upload(KernelSource()).ok());
  ASSERT_TRUE(worker->Complete(lease->lease(), worker->RecordOf(lease->lease())).ok());
  const auto done = Wait(running->name(), 5);
  ASSERT_TRUE(done->has_response());
  EXPECT_EQ(JobOf(*done).attempts(), 0) << "a restart is no attempt";
  EXPECT_TRUE(worker->RunOne().ok()) << "the queued job is still there";
  EXPECT_TRUE(Wait(queued->name(), 5)->has_response());
}

}  // namespace
}  // namespace kiln::server
