// SPDX-License-Identifier: Apache-2.0
// What workers call: leases and their ends, fencing, refused records, artifacts in chunks.
#include <gmock/gmock.h>

#include <thread>

#include "proto/wire.h"
#include "tests/server/service_fixture.h"

namespace kiln::server {
namespace {

class WorkerServiceTest : public ServiceTest {
 protected:
  // A server whose leases end soon.
  void ShortLeases() {
    StopServer();
    options_.heartbeat = absl::Milliseconds(50);
    options_.jobs.lease_expiry = absl::Milliseconds(200);
    options_.jobs.reconnect_grace = absl::ZeroDuration();
    StartServer();
  }
  v1::Job JobNow(const std::string& name) {
    v1::GetJobRequest request;
    v1::Job job;
    request.set_name(name);
    EXPECT_TRUE(kiln_->GetJob(Context().get(), request, &job).ok());
    return job;
  }
};

TEST_F(WorkerServiceTest, RegistrationSaysTheIntervalsAndAnUnknownWorkerHasToRegister) {
  FakeWorker worker(channel_, "workers/a");
  EXPECT_EQ(ReasonOf(worker.Poll(0).status()), "WORKER_UNKNOWN");
  const auto registered = worker.Register();
  ASSERT_TRUE(registered.ok());
  EXPECT_EQ(registered->heartbeat_interval().seconds(), 2);
  EXPECT_EQ(registered->lease_expiry().seconds(), 10);
  EXPECT_FALSE(registered->keep_lease());
  FakeWorker nameless(channel_, "somebody");
  EXPECT_EQ(DetailOf(nameless.Register().status(), "field"), "name");
}

TEST_F(WorkerServiceTest, AnEmptyQueueEndsThePollWhenItsTimeIsUp) {
  const auto worker = MakeWorker();
  const auto response = worker->Poll(0.15);
  ASSERT_TRUE(response.ok()) << response.status();
  EXPECT_FALSE(response->has_lease());
}

TEST_F(WorkerServiceTest, TheLeaseHasAllThatTheJobNeeds) {
  const auto worker = MakeWorker();
  v1::TuneScheduleRequest request = TuneRequest();
  request.mutable_budget()->set_trials(40);
  request.mutable_budget()->set_seed(9);
  ASSERT_TRUE(Tune(request).ok());
  const v1::Lease lease = worker->Poll()->lease();
  EXPECT_EQ(lease.epoch(), 1);
  EXPECT_EQ(wire::FromWire(lease.spec())->dims.at("M").lo, 64);
  EXPECT_EQ(lease.signature(), MatMul().signature);
  EXPECT_EQ(*wire::FromWire(lease.device()), CpuDevice());
  EXPECT_EQ(lease.budget().trials(), 40);
  EXPECT_EQ(lease.budget().seed(), 9u);
  EXPECT_EQ(lease.objective().cache(), v1::Objective::CACHE_WARM);
  EXPECT_FALSE(lease.has_incumbent());
}

TEST_F(WorkerServiceTest, WhatCrashedBeforeComesWithTheNextLease) {
  const auto worker = MakeWorker();
  ASSERT_TRUE(Tune(TuneRequest()).ok());
  v1::Lease lease = worker->Poll()->lease();
  ASSERT_TRUE(worker->Report(lease, {Measured(0), Failed(1, Stage::kCrash, "signal 11")}).ok());
  ASSERT_TRUE(worker->Release(lease).ok());
  const auto other = MakeWorker("workers/b");
  lease = other->Poll()->lease();
  EXPECT_EQ(lease.epoch(), 2);
  EXPECT_EQ(lease.known_size(), 2);
  ASSERT_EQ(lease.blocklist_size(), 1);
  EXPECT_EQ(lease.blocklist(0).stage(), v1::STAGE_CRASH);
  EXPECT_EQ(lease.first_sequence(), 2);
  EXPECT_EQ(lease.budget().trials(), 198);
}

TEST_F(WorkerServiceTest, ASilentWorkersJobGoesToAnotherAndItsEpochCompletesNothing) {
  ShortLeases();
  const auto silent = MakeWorker("workers/silent");
  const auto operation = Tune(TuneRequest());
  const v1::Lease old = silent->Poll()->lease();
  const auto other = MakeWorker("workers/other");
  const auto next = other->Poll(10);
  ASSERT_TRUE(next.ok() && next->has_lease());
  EXPECT_EQ(next->lease().job(), old.job());
  EXPECT_EQ(next->lease().epoch(), 2);
  ASSERT_TRUE(silent->Upload(CompiledKernel()).ok());
  ASSERT_TRUE(silent->Upload(KernelSource()).ok());
  const auto late = silent->Complete(old, silent->RecordOf(old));
  EXPECT_TRUE(absl::IsAborted(late.status()));
  EXPECT_EQ(ReasonOf(late.status()), "LEASE_LOST");
  EXPECT_EQ(ReasonOf(silent->Heartbeat(old).status()), "LEASE_LOST");
  EXPECT_TRUE(silent->Report(old, {Measured(0)}).ok()) << "a measurement is a fact";
  EXPECT_TRUE(other->Complete(next->lease(), other->RecordOf(next->lease())).ok());
  const v1::Job job = JobOf(*Wait(operation->name(), 5));
  EXPECT_EQ(job.attempts(), 1);
  EXPECT_THAT(job.losses(0), ::testing::HasSubstr("workers/silent"));
}

TEST_F(WorkerServiceTest, ThreeLostWorkersFailTheJobWithTheReasons) {
  ShortLeases();
  const auto operation = Tune([&] {
    MakeWorker("workers/0");
    return TuneRequest();
  }());
  for (int i = 0; i < 3; ++i) {
    const auto worker = MakeWorker(absl::StrCat("workers/", i));
    const auto lease = worker->Poll(10);
    ASSERT_TRUE(lease.ok() && lease->has_lease()) << i << ": " << lease.status();
  }
  const auto done = Wait(operation->name(), 10);
  ASSERT_TRUE(done->has_error()) << done->ShortDebugString();
  EXPECT_EQ(ReasonOf(wire::FromWire(done->error())), "WORKERS_LOST");
  EXPECT_EQ(JobOf(*done).losses_size(), 3);
}

TEST_F(WorkerServiceTest, CompletingAgainAfterALostAnswerGivesTheSameAnswer) {
  const auto worker = MakeWorker();
  ASSERT_TRUE(Tune(TuneRequest()).ok());
  const v1::Lease lease = worker->Poll()->lease();
  ASSERT_TRUE(worker->Upload(CompiledKernel()).ok());
  ASSERT_TRUE(worker->Upload(KernelSource()).ok());
  const auto first = worker->Complete(lease, worker->RecordOf(lease));
  const auto second = worker->Complete(lease, worker->RecordOf(lease));
  ASSERT_TRUE(first.ok()) << first.status();
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_EQ(*first, *second);
  EXPECT_EQ(store_.ListRecords({}, {})->items.size(), 1u);
}

TEST_F(WorkerServiceTest, ARecordWithoutProofOrArtifactsIsRefusedAndTheJobGoesOn) {
  const auto worker = MakeWorker();
  const auto operation = Tune(TuneRequest());
  const v1::Lease lease = worker->Poll()->lease();
  EXPECT_EQ(ReasonOf(worker->Complete(lease, worker->RecordOf(lease)).status()),
            "ARTIFACT_MISSING");
  ASSERT_TRUE(worker->Upload(CompiledKernel()).ok());
  ASSERT_TRUE(worker->Upload(KernelSource()).ok());
  Record wrong = worker->RecordOf(lease);
  wrong.verification.max_error = 17;
  EXPECT_EQ(ReasonOf(worker->Complete(lease, wrong).status()), "RECORD_REFUSED");
  wrong = worker->RecordOf(lease);
  wrong.verification = {};
  EXPECT_EQ(DetailOf(worker->Complete(lease, wrong).status(), "field"), "record.verification");
  wrong = worker->RecordOf(lease);
  wrong.key.signature = MatMul(1, 2, 3).signature;
  EXPECT_EQ(DetailOf(worker->Complete(lease, wrong).status(), "field"), "record.signature");
  EXPECT_FALSE(GetOperation(operation->name())->done());
  EXPECT_TRUE(store_.ListRecords({}, {})->items.empty());
  EXPECT_TRUE(worker->Complete(lease, worker->RecordOf(lease)).ok());
}

TEST_F(WorkerServiceTest, ArtifactsBeyondTheMessageLimitTravelInChunks) {
  const auto worker = MakeWorker();
  std::string bytes(5'500'000, 0);
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>(i * 2654435761u >> 13);
  const Artifact large{Sha256Hex(bytes), "elf-so", bytes};
  bool before = true;
  ASSERT_TRUE(worker->Upload(large, &before).ok());
  EXPECT_FALSE(before);
  ASSERT_TRUE(worker->Upload(large, &before).ok());
  EXPECT_TRUE(before);
  const auto read = [&](int64_t offset) {
    auto context = Context();
    v1::ReadArtifactRequest request;
    request.set_digest(large.digest);
    request.set_offset(offset);
    auto stream = artifacts_->ReadArtifact(context.get(), request);
    std::string got;
    v1::ReadArtifactResponse chunk;
    bool first = true;
    while (stream->Read(&chunk)) {
      if (first) {
        EXPECT_EQ(chunk.size(), static_cast<int64_t>(bytes.size()));
      }
      first = false;
      EXPECT_LE(chunk.chunk().size(), size_t{1} << 20);
      got += chunk.chunk();
    }
    EXPECT_TRUE(stream->Finish().ok());
    return got;
  };
  EXPECT_EQ(read(0), bytes);
  EXPECT_EQ(read(5'000'000), bytes.substr(5'000'000));
}

TEST_F(WorkerServiceTest, ArtifactsAreCheckedOnTheWayIn) {
  const auto worker = MakeWorker();
  Artifact wrong = CompiledKernel();
  wrong.bytes += "!";
  EXPECT_EQ(ReasonOf(worker->Upload(wrong)), "DIGEST_MISMATCH");
  wrong.digest = "short";
  EXPECT_EQ(ReasonOf(worker->Upload(wrong)), "BAD_DIGEST");
  auto context = Context();
  v1::WriteArtifactResponse response;
  auto writer = artifacts_->WriteArtifact(context.get(), &response);
  v1::WriteArtifactRequest request;
  request.set_digest(CompiledKernel().digest);
  request.set_size(3);
  request.set_chunk("four");
  writer->Write(request);
  writer->WritesDone();
  EXPECT_EQ(ReasonOf(wire::FromGrpc(writer->Finish())), "WRONG_SIZE");
  auto read_context = Context();
  v1::ReadArtifactRequest missing;
  missing.set_digest(std::string(64, 'a'));
  auto stream = artifacts_->ReadArtifact(read_context.get(), missing);
  v1::ReadArtifactResponse chunk;
  EXPECT_FALSE(stream->Read(&chunk));
  const absl::Status status = wire::FromGrpc(stream->Finish());
  EXPECT_TRUE(absl::IsNotFound(status));
  EXPECT_THAT(std::string(status.message()), ::testing::HasSubstr(std::string(64, 'a')));
}

TEST_F(WorkerServiceTest, AReleasedJobIsServedAgainWithoutAnAttempt) {
  const auto worker = MakeWorker();
  const auto operation = Tune(TuneRequest());
  const v1::Lease lease = worker->Poll()->lease();
  ASSERT_TRUE(worker->Release(lease).ok());
  EXPECT_EQ(JobNow(lease.job()).attempts(), 0);
  const auto other = MakeWorker("workers/b");
  EXPECT_TRUE(other->RunOne().ok());
  EXPECT_TRUE(Wait(operation->name(), 5)->has_response());
}

}  // namespace
}  // namespace kiln::server
