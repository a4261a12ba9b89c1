// SPDX-License-Identifier: Apache-2.0
// TuneSchedule and GetSchedule end to end, with workers of the test: dedupe, publication, forced
// searches, retries.
#include <gmock/gmock.h>

#include <atomic>
#include <thread>

#include "proto/wire.h"
#include "tests/server/service_fixture.h"

namespace kiln::server {
namespace {

using ::testing::HasSubstr;

class TuneServiceTest : public ServiceTest {};

TEST_F(TuneServiceTest, AMissIsNotFoundStartsNothingAndSaysWhatWould) {
  const auto worker = MakeWorker();
  const auto miss = Get(GetRequest());
  EXPECT_TRUE(absl::IsNotFound(miss.status()));
  EXPECT_EQ(ReasonOf(miss.status()), "NOT_TUNED");
  EXPECT_THAT(DetailOf(miss.status(), "command"),
              HasSubstr("kiln tune MatMul.kiln --dims K=32,M=64,N=48"));
  EXPECT_EQ(DetailOf(miss.status(), "signature").size(), 64u);
  EXPECT_TRUE(store_.ListJobs(false, {})->items.empty());
}

TEST_F(TuneServiceTest, ASearchIsAnsweredStoredAndThenFound) {
  const auto worker = MakeWorker();
  EXPECT_FALSE(Get(GetRequest()).ok());  // remembered, and forgotten when the record is published
  const auto operation = Tune(TuneRequest());
  ASSERT_TRUE(operation.ok()) << operation.status();
  EXPECT_FALSE(operation->done());
  const auto record = worker->RunOne();
  ASSERT_TRUE(record.ok()) << record.status();
  const auto done = Wait(operation->name(), 5);
  ASSERT_TRUE(done.ok()) << done.status();
  const v1::TuneScheduleResponse response = ResponseOf(*done);
  EXPECT_EQ(response.record().name(), *record);
  EXPECT_TRUE(response.record().published());
  EXPECT_EQ(response.job(), JobOf(*operation).name());
  EXPECT_EQ(response.record().plan().steps(0).arguments(2).name(), "C");

  const auto found = Get(GetRequest());
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(found->match(), v1::MATCH_EXACT);
  EXPECT_EQ(found->record().name(), *record);
  EXPECT_EQ(found->job(), JobOf(*operation).name());
  EXPECT_GT(found->lookup_ns(), 0);
  const auto again = Get(GetRequest());
  ASSERT_TRUE(again.ok());
  EXPECT_GT(server_->core()->counters.lookups_from_memory, 0);
  EXPECT_EQ(again->record().SerializeAsString().size(), found->record().SerializeAsString().size());
}

TEST_F(TuneServiceTest, ArgumentsBearTheAskersNames) {
  const auto worker = MakeWorker();
  ASSERT_TRUE(Tune(TuneRequest()).ok());
  ASSERT_TRUE(worker->RunOne().ok());
  v1::GetScheduleRequest renamed = GetRequest();
  renamed.mutable_selection()->mutable_workload()->set_program(
      "operator P(M, N, K) { input left[M,K], right[K,N]; output product[M,N] = sum(left[a,b] * "
      "right[b,c]); }");
  const auto found = Get(renamed);
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(found->record().plan().steps(0).arguments(0).name(), "left");
  EXPECT_EQ(found->record().plan().tensors(2).name(), "product");
}

TEST_F(TuneServiceTest, WhatIsStoredIsAnsweredAtOnceUnderANameThatLasts) {
  const auto worker = MakeWorker();
  ASSERT_TRUE(Tune(TuneRequest()).ok());
  const auto record = worker->RunOne();
  v1::TuneScheduleRequest request = TuneRequest();
  request.set_request_id("5b2f7a0e-1f6e-4a53-8f6c-0a8ad5bb6e1b");
  const auto stored = Tune(request);
  ASSERT_TRUE(stored.ok()) << stored.status();
  EXPECT_TRUE(stored->done());
  EXPECT_EQ(ResponseOf(*stored).record().name(), *record);
  EXPECT_EQ(Tune(request)->name(), stored->name());
  EXPECT_NE(Tune(request, "bob")->name(), stored->name());
  StopServer();
  StartServer();
  const auto later = GetOperation(stored->name());
  ASSERT_TRUE(later.ok()) << later.status();
  EXPECT_EQ(ResponseOf(*later).record().name(), *record);
  EXPECT_TRUE(Wait(stored->name(), 1)->done());
  EXPECT_TRUE(Cancel(stored->name()).ok());
}

TEST_F(TuneServiceTest, AThousandCallersAtOnceShareOneJobAndAllAreAnswered) {
  const auto worker = MakeWorker();
  constexpr int kThreads = 20, kEach = 50;
  std::vector<std::thread> threads;
  std::mutex mutex;
  std::map<std::string, int> jobs, records, names;
  std::atomic<int> asked{0};
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      std::vector<std::string> mine;
      for (int i = 0; i < kEach; ++i) {
        const auto operation = Tune(TuneRequest(), absl::StrCat("client-", t));
        ASSERT_TRUE(operation.ok()) << operation.status();
        mine.push_back(operation->name());
        std::lock_guard<std::mutex> lock(mutex);
        ++jobs[JobOf(*operation).name()];
        ++names[operation->name()];
      }
      asked += kEach;
      for (const std::string& name : mine) {
        const auto done = Wait(name, 60);
        ASSERT_TRUE(done.ok()) << done.status();
        std::lock_guard<std::mutex> lock(mutex);
        ++records[ResponseOf(*done).record().name()];
      }
    });
  }
  Await([&] { return asked == kThreads * kEach; }, "all have asked");
  const auto record = worker->RunOne();
  ASSERT_TRUE(record.ok()) << record.status();
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(jobs.size(), 1u);
  EXPECT_EQ(names.size(), 1000u);
  ASSERT_EQ(records.size(), 1u);
  EXPECT_EQ(records[*record], 1000);
  EXPECT_EQ(server_->core()->counters.tunes_created, 1);
  EXPECT_EQ(server_->core()->counters.tunes_joined, 999);
}

TEST_F(TuneServiceTest, SpellingsOfOneProgramShareTheJob) {
  const auto worker = MakeWorker();
  const auto first = Tune(TuneRequest());
  v1::TuneScheduleRequest other = TuneRequest();
  other.mutable_selection()->mutable_workload()->set_program(
      "operator Anything(M, N, K) { // the same\n input p[M,K], q[K,N]; output r[M,N]; r[x,y] = "
      "sum(p[x,z]*q[z,y]); }");
  const auto second = Tune(other, "bob");
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_EQ(JobOf(*first).name(), JobOf(*second).name());
}

TEST_F(TuneServiceTest, AFailedJobFailsAllWithOneReasonAndTheNextStartsAnew) {
  const auto worker = MakeWorker();
  const auto a = Tune(TuneRequest()), b = Tune(TuneRequest(), "bob");
  const auto lease = worker->Poll();
  ASSERT_TRUE(lease.ok() && lease->has_lease());
  ASSERT_TRUE(
      worker->Report(lease->lease(), {Failed(0, Stage::kCompile, "error: no such register")}).ok());
  ASSERT_TRUE(
      worker->Fail(lease->lease(), "NO_CANDIDATE", "every candidate failed: compile 1").ok());
  for (const auto& operation : {a, b}) {
    const auto done = Wait(operation->name(), 5);
    ASSERT_TRUE(done->has_error());
    const absl::Status error = wire::FromWire(done->error());
    EXPECT_EQ(ReasonOf(error), "NO_CANDIDATE");
    EXPECT_EQ(DetailOf(error, "outcomes_compile"), "1");
  }
  const auto next = Tune(TuneRequest());
  EXPECT_NE(JobOf(*next).name(), JobOf(*a).name());
}

TEST_F(TuneServiceTest, ForceSearchesAgainAndPublishesOnlyWhatIsFasterBeyondTheNoise) {
  const auto worker = MakeWorker();
  ASSERT_TRUE(Tune(TuneRequest()).ok());
  const auto first = worker->RunOne();
  v1::TuneScheduleRequest force = TuneRequest();
  force.set_force(true);
  const auto again = Tune(force);
  ASSERT_TRUE(again.ok());
  EXPECT_FALSE(again->done());
  EXPECT_EQ(JobOf(*Tune(force, "bob")).name(), JobOf(*again).name()) << "it still joins a live job";
  auto lease = worker->Poll();
  ASSERT_TRUE(lease->has_lease());
  EXPECT_EQ(lease->lease().incumbent().name(), *first);
  EXPECT_EQ(lease->lease().known_size(), 1);
  Record equal = worker->RecordOf(lease->lease());
  equal.contest["incumbent"] = 1.002;
  EXPECT_EQ(*worker->Complete(lease->lease(), equal), *first) << "the incumbent still answers";
  EXPECT_EQ(ResponseOf(*Wait(again->name(), 5)).record().name(), *first);
  EXPECT_EQ(Get(GetRequest())->record().name(), *first);

  const auto third = Tune(force);
  lease = worker->Poll();
  Record faster = worker->RecordOf(lease->lease());
  faster.contest["incumbent"] = 1.2;
  const auto better = worker->Complete(lease->lease(), faster);
  ASSERT_TRUE(better.ok()) << better.status();
  EXPECT_NE(*better, *first);
  EXPECT_EQ(Get(GetRequest())->record().name(), *better)
      << "no remembered answer outlives its publication";
  EXPECT_EQ(ResponseOf(*Wait(third->name(), 5)).record().name(), *better);
}

TEST_F(TuneServiceTest, ARepeatedRequestIdReturnsTheOperationEvenAfterARestart) {
  const auto worker = MakeWorker();
  v1::TuneScheduleRequest request = TuneRequest();
  request.set_request_id("0f0e7a0e-1f6e-4a53-8f6c-0a8ad5bb6e1b");
  request.set_force(true);
  const auto first = Tune(request);
  EXPECT_EQ(Tune(request)->name(), first->name());
  ASSERT_TRUE(worker->RunOne().ok());
  EXPECT_EQ(Tune(request)->name(), first->name());
  StopServer();
  StartServer();
  const auto after = Tune(request);
  ASSERT_TRUE(after.ok()) << after.status();
  EXPECT_EQ(after->name(), first->name());
  EXPECT_TRUE(after->done());
}

TEST_F(TuneServiceTest, AStaleRecordAnswersOnlyThoseWhoTakeOneAndIsSearchedAgain) {
  {
    const auto worker = MakeWorker();
    ASSERT_TRUE(Tune(TuneRequest()).ok());
    ASSERT_TRUE(worker->RunOne().ok());
  }
  // The worker comes back with another compiler.
  auto stub = v1::WorkerService::NewStub(channel_);
  v1::RegisterRequest request;
  v1::RegisterResponse response;
  request.set_name("workers/a");
  request.set_host("host");
  request.set_pid(1);
  wire::ToWire(CpuDevice(), request.mutable_device());
  request.set_toolchain("g++ 14.2.0");
  ASSERT_TRUE(stub->Register(Context().get(), request, &response).ok());
  const auto exact = Get(GetRequest());
  EXPECT_EQ(ReasonOf(exact.status()), "STALE");
  v1::GetScheduleRequest lenient = GetRequest();
  lenient.set_min_quality(v1::MATCH_STALE);
  const auto stale = Get(lenient);
  ASSERT_TRUE(stale.ok()) << stale.status();
  EXPECT_EQ(stale->match(), v1::MATCH_STALE);
  EXPECT_THAT(stale->stale_because(0), HasSubstr("g++ 14.2.0"));
  EXPECT_FALSE(Tune(TuneRequest())->done());
}

TEST_F(TuneServiceTest, ABatchAnswersItemByItem) {
  const auto worker = MakeWorker();
  ASSERT_TRUE(Tune(TuneRequest()).ok());
  ASSERT_TRUE(worker->RunOne().ok());
  v1::BatchGetSchedulesRequest request;
  *request.add_requests() = GetRequest();
  *request.add_requests() = GetRequest(65);
  *request.add_requests() = GetRequest();
  request.mutable_requests(2)->mutable_selection()->mutable_workload()->set_program(
      "operator Broken(");
  v1::BatchGetSchedulesResponse response;
  ASSERT_TRUE(kiln_->BatchGetSchedules(Context().get(), request, &response).ok());
  ASSERT_EQ(response.items_size(), 3);
  EXPECT_EQ(response.items(0).response().match(), v1::MATCH_EXACT);
  EXPECT_EQ(response.items(1).response().match(), v1::MATCH_NONE);
  EXPECT_FALSE(response.items(1).has_status());
  EXPECT_EQ(response.items(2).status().code(),
            static_cast<int>(absl::StatusCode::kInvalidArgument));
  for (int i = 0; i < 1001; ++i) *request.add_requests() = GetRequest();
  const grpc::Status status = kiln_->BatchGetSchedules(Context().get(), request, &response);
  EXPECT_EQ(DetailOf(wire::FromGrpc(status), "allowed"), "0..1000");
  EXPECT_EQ(store_.ListJobs(false, {})->items.size(), 1u) << "a batch starts nothing";
}

TEST_F(TuneServiceTest, AFullDiskRefusesAndTheWorkerCompletesWhenThereIsSpaceAgain) {
  const auto worker = MakeWorker();
  const auto operation = Tune(TuneRequest());
  const auto lease = worker->Poll();
  ASSERT_TRUE(lease->has_lease());
  ASSERT_TRUE(worker->Upload(CompiledKernel()).ok());
  ASSERT_TRUE(worker->Upload(KernelSource()).ok());
  store_.FailWrites(absl::UnavailableError("the disk is full"));
  EXPECT_TRUE(absl::IsUnavailable(
      worker->Complete(lease->lease(), worker->RecordOf(lease->lease())).status()));
  EXPECT_TRUE(absl::IsUnavailable(Tune(TuneRequest(65)).status()));
  EXPECT_FALSE(GetOperation(operation->name())->done());
  store_.FailWrites(absl::OkStatus());
  EXPECT_TRUE(worker->Complete(lease->lease(), worker->RecordOf(lease->lease())).ok());
  EXPECT_TRUE(Wait(operation->name(), 5)->done());
  store_.FailWrites(MakeError(absl::StatusCode::kFailedPrecondition, "read-only store",
                              {"DATABASE_READ_ONLY", {}}));
  EXPECT_TRUE(Get(GetRequest()).ok());
  EXPECT_EQ(ReasonOf(Tune(TuneRequest(65)).status()), "DATABASE_READ_ONLY");
  store_.FailWrites(absl::OkStatus());
  // A server that was told so says so itself, and still answers what is stored.
  StopServer();
  options_.read_only = true;
  StartServer();
  EXPECT_TRUE(Tune(TuneRequest())->done());
  const absl::Status refused = Tune(TuneRequest(65)).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(refused));
  EXPECT_EQ(ReasonOf(refused), "READ_ONLY_STORE");
}

}  // namespace
}  // namespace kiln::server
