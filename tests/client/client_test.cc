// SPDX-License-Identifier: Apache-2.0
#include "client/kiln_client.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "proto/contract/error.h"
#include "tests/client/fake_server.h"

namespace kiln::client {
namespace {

class ClientTest : public testing::Test {
 protected:
  std::unique_ptr<Client> MakeClient(ClientOptions options = {}) {
    options.server = server_.address();
    auto client = Client::Make(options);
    EXPECT_TRUE(client.ok()) << client.status();
    return *std::move(client);
  }

  std::string DetailOf(const absl::Status& status, const std::string& name) {
    return GetErrorInfo(status).details[name];
  }

  FakeServer server_;
};

TEST_F(ClientTest, LookupsHitOrSayWhatIsMissing) {
  const auto client = MakeClient();
  const FakeProduct stored = MakeProduct(4, 5, 6), missing = MakeProduct(7, 5, 6);
  server_.Store(stored.record);
  const auto answer = client->GetSchedule({.workload = stored.spec});
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(answer->match, Match::kExact);
  EXPECT_EQ(answer->record.key.signature, stored.record.key.signature);
  EXPECT_EQ(answer->record.plan, stored.record.plan);
  EXPECT_EQ(answer->lookup_ns, 5000);
  const auto none = client->GetSchedule({.workload = missing.spec});
  EXPECT_EQ(none.status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(GetErrorInfo(none.status()).reason, "NOT_TUNED");
}

TEST_F(ClientTest, AnAnswerIsKeptInMemory) {
  const auto client = MakeClient(), forgetful = MakeClient({.answers = 0});
  const FakeProduct product = MakeProduct(4, 5, 6);
  server_.Store(product.record);
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(client->GetSchedule({.workload = product.spec}).ok());
  EXPECT_EQ(server_.lookups, 1);
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(forgetful->GetSchedule({.workload = product.spec}).ok());
  EXPECT_EQ(server_.lookups, 4);
}

TEST_F(ClientTest, BatchesOfAnySizeAnswerEachItem) {
  const auto client = MakeClient();
  const FakeProduct stored = MakeProduct(4, 5, 6);
  server_.Store(stored.record);
  std::vector<Selection> selections(1500, Selection{.workload = MakeProduct(9, 9, 9).spec});
  selections[1200].workload = stored.spec;
  selections[3].workload.program = "nonsense";
  const auto answers = client->BatchGetSchedules(selections);
  ASSERT_TRUE(answers.ok()) << answers.status();
  ASSERT_EQ(answers->size(), 1500);
  EXPECT_EQ(server_.lookups, 2);
  EXPECT_EQ((*answers)[0]->match, Match::kNone);
  EXPECT_EQ((*answers)[1200]->match, Match::kExact);
  EXPECT_EQ((*answers)[3].status().code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(ClientTest, OnlyUnavailableIsRetried) {
  const auto client = MakeClient();
  const FakeProduct product = MakeProduct(4, 5, 6);
  server_.Store(product.record);
  const auto unavailable = MakeError(absl::StatusCode::kUnavailable, "starting",
                                     {"STARTING", {{"retry_after_seconds", "0.01"}}});
  server_.AddFailure(unavailable);
  server_.AddFailure(unavailable);
  EXPECT_TRUE(client->GetSchedule({.workload = product.spec}).ok());
  EXPECT_EQ(server_.lookups, 3);
  server_.AddFailure(MakeError(absl::StatusCode::kResourceExhausted, "full", {"QUEUE_FULL", {}}));
  const auto refused = client->StartTune({.selection = {.workload = product.spec}, .force = true});
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(server_.tunes, 1);
}

TEST_F(ClientTest, AServerThatIsNotThereIsNamed) {
  server_.Stop();
  const auto client = MakeClient({.retry_for = absl::Milliseconds(50)});
  const auto answer = client->GetSchedule({.workload = MakeProduct(4, 5, 6).spec});
  EXPECT_EQ(answer.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(GetErrorInfo(answer.status()).reason, "SERVER_UNAVAILABLE");
  EXPECT_NE(answer.status().message().find(server_.address()), std::string::npos);
  EXPECT_EQ(Client::Make({.server = "nonsense"}).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST_F(ClientTest, TuningWhatIsStoredIsDoneAtOnce) {
  const auto client = MakeClient();
  const FakeProduct product = MakeProduct(4, 5, 6);
  server_.Store(product.record);
  const auto answer = client->Tune({.selection = {.workload = product.spec}});
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(answer->match, Match::kExact);
  EXPECT_EQ(server_.watches, 0);
}

TEST_F(ClientTest, TuneShowsProgressUntilTheAnswer) {
  const auto client = MakeClient();
  const FakeProduct product = MakeProduct(4, 5, 6);
  server_.AddWatch(
      {{RunningOperation("operations/1", 2, 10), RunningOperation("operations/1", 7, 10),
        DoneOperation("operations/1", product.record)},
       absl::OkStatus()});
  std::vector<int64_t> done;
  const auto answer =
      client->Tune({.selection = {.workload = product.spec}},
                   [&](const OperationState& state) { done.push_back(state.job.progress.done); });
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(answer->record.id, product.record.id);
  EXPECT_EQ(done, (std::vector<int64_t>{0, 2, 7, 0}));
}

TEST_F(ClientTest, AStreamThatEndsEarlyIsTakenUpAgain) {
  const auto client = MakeClient();
  const FakeProduct product = MakeProduct(4, 5, 6);
  server_.AddWatch(
      {{RunningOperation("operations/1", 2, 10)}, absl::UnavailableError("going down")});
  server_.AddWatch({{}, absl::OkStatus()});
  server_.AddWatch({{DoneOperation("operations/1", product.record)}, absl::OkStatus()});
  EXPECT_TRUE(client->Tune({.selection = {.workload = product.spec}}).ok());
  EXPECT_EQ(server_.watches, 3);
  EXPECT_EQ(server_.tunes, 1);
}

TEST_F(ClientTest, AnOperationThatTheServerForgotIsAskedForAnew) {
  const auto client = MakeClient();
  const FakeProduct product = MakeProduct(4, 5, 6);
  server_.AddWatch(
      {{}, MakeError(absl::StatusCode::kNotFound, "no operation", {"OPERATION_UNKNOWN", {}})});
  server_.AddWatch({{DoneOperation("operations/2", product.record)}, absl::OkStatus()});
  EXPECT_TRUE(client->Tune({.selection = {.workload = product.spec}}).ok());
  EXPECT_EQ(server_.tunes, 2);
}

TEST_F(ClientTest, AServerThatStaysAwayIsGivenUpAndTheJobNamed) {
  const auto client = MakeClient({.reconnect_for = absl::Milliseconds(300)});
  std::atomic<bool> watching{false};
  std::thread stopper([&] {
    while (!watching) std::this_thread::yield();
    server_.Stop();
  });
  const auto answer = client->Tune(
      {.selection = {.workload = MakeProduct(4, 5, 6).spec}},
      [&](const OperationState& state) { watching = watching || state.job.progress.done == 3; });
  stopper.join();
  EXPECT_EQ(answer.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(DetailOf(answer.status(), "job"), "jobs/00000000000000bb");
  EXPECT_NE(answer.status().message().find("jobs/00000000000000bb"), std::string::npos);
}

TEST_F(ClientTest, AServerThatComesBackIsFoundAgain) {
  const auto client = MakeClient();
  const FakeProduct product = MakeProduct(4, 5, 6);
  std::atomic<bool> watching{false};
  std::thread restarter([&] {
    while (!watching) std::this_thread::yield();
    server_.Stop();
    server_.AddWatch({{DoneOperation("operations/1", product.record)}, absl::OkStatus()});
    server_.Start();
  });
  const auto answer = client->Tune(
      {.selection = {.workload = product.spec}},
      [&](const OperationState& state) { watching = watching || state.job.progress.done == 3; });
  restarter.join();
  EXPECT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(server_.tunes, 1);
}

TEST_F(ClientTest, AStopEndsTheWaitAndNothingElse) {
  const auto client = MakeClient();
  std::stop_source stop;
  const auto answer = client->Tune(
      {.selection = {.workload = MakeProduct(4, 5, 6).spec}},
      [&](const OperationState& state) {
        if (state.job.progress.done == 3) stop.request_stop();
      },
      stop.get_token());
  EXPECT_EQ(answer.status().code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(DetailOf(answer.status(), "operation"), "operations/00000000000000aa");
  EXPECT_EQ(server_.cancels, 0);
}

TEST_F(ClientTest, AWaitThatRunsOutNamesTheOperation) {
  const auto client = MakeClient();
  const auto answer = client->Tune(
      {.selection = {.workload = MakeProduct(4, 5, 6).spec}, .wait = absl::Milliseconds(200)});
  EXPECT_EQ(answer.status().code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(DetailOf(answer.status(), "operation"), "operations/00000000000000aa");
  EXPECT_EQ(server_.cancels, 0);
}

TEST_F(ClientTest, AJobsFailureIsToldFromACalls) {
  const auto client = MakeClient();
  server_.AddWatch(
      {{FailedOperation("operations/1", MakeError(absl::StatusCode::kInternal,
                                                  "every candidate failed", {"ALL_FAILED", {}}))},
       absl::OkStatus()});
  const auto answer = client->Tune({.selection = {.workload = MakeProduct(4, 5, 6).spec}});
  EXPECT_EQ(GetErrorInfo(answer.status()).reason, "ALL_FAILED");
  EXPECT_EQ(DetailOf(answer.status(), "failed"), "job");
}

TEST_F(ClientTest, ListsTurnAllPages) {
  const auto client = MakeClient();
  EXPECT_TRUE(client->ListRecords()->empty());
  for (const int64_t m : {1, 2, 3}) server_.Store(MakeProduct(m, 4, 4).record);
  EXPECT_EQ(client->ListRecords()->size(), 3);
  EXPECT_EQ(client->ListWorkers()->size(), 1);
  EXPECT_TRUE(client->ListJobs()->empty());
  EXPECT_TRUE(client->GetRecord("rec-00000000000000cc").ok());
  EXPECT_EQ(client->GetRecord("rec-0").status().code(), absl::StatusCode::kNotFound);
}

TEST_F(ClientTest, ArtifactsComeInChunksAndAreResumed) {
  const auto client = MakeClient();
  server_.chunk_bytes = 1000;
  server_.break_read_after = 5000;
  const auto bytes = client->FetchArtifact(KernelArtifactDigest());
  ASSERT_TRUE(bytes.ok()) << bytes.status();
  EXPECT_EQ(*bytes, KernelArtifact());
  EXPECT_EQ(server_.artifact_reads, 2);
}

TEST_F(ClientTest, AnArtifactWithAnotherDigestIsRefused) {
  const auto client = MakeClient();
  const std::string digest(64, 'a');
  server_.StoreArtifact(digest, "something else");
  EXPECT_EQ(client->FetchArtifact(digest).status().code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(client->FetchArtifact(std::string(64, 'b')).status().code(),
            absl::StatusCode::kNotFound);
  EXPECT_EQ(client->FetchArtifact("../etc/passwd").status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST_F(ClientTest, CachedArtifactsAreCheckedBeforeUse) {
  const std::filesystem::path directory =
      std::filesystem::path(testing::TempDir()) / "kiln-client-cache";
  std::filesystem::remove_all(directory);
  const auto client = MakeClient({.cache_directory = directory.string()});
  for (int i = 0; i < 3; ++i)
    ASSERT_EQ(client->FetchArtifact(KernelArtifactDigest()).value_or(""), KernelArtifact());
  EXPECT_EQ(server_.artifact_reads, 1);
  std::ofstream(directory / KernelArtifactDigest(), std::ios::trunc) << "torn";
  EXPECT_EQ(client->FetchArtifact(KernelArtifactDigest()).value_or(""), KernelArtifact());
  EXPECT_EQ(server_.artifact_reads, 2);
  std::filesystem::remove_all(directory);
}

}  // namespace
}  // namespace kiln::client
