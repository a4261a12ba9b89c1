// SPDX-License-Identifier: Apache-2.0
// Answers kept for lookups: what they say, whom they answer, when they end.
#include <gmock/gmock.h>

#include "proto/wire.h"
#include "server/answer_maker.h"
#include "server/answer_message.h"
#include "server/answers_version.h"
#include "tests/server/service_fixture.h"

namespace kiln::server {
namespace {

class KeptAnswersTest : public ServiceTest {
 protected:
  // Tunes, and waits for the answer that is made behind the publication.
  std::string MustTune(FakeWorker& worker, double median_ns = 1000) {
    v1::TuneScheduleRequest request = TuneRequest();
    request.set_force(true);
    EXPECT_TRUE(Tune(request).ok());
    absl::StatusOr<std::string> record = worker.RunOne(median_ns);
    EXPECT_TRUE(record.ok()) << record.status();
    AwaitAnswers();
    return record.value_or("");
  }
  void AwaitAnswers() {
    Await([&] { return store_.Counters()["unanswered"] == 0; }, "the answers are made");
  }
  int64_t KeptHits() { return store_.Counters()["answer_hits"]; }
  // A server without memory of what was asked.
  void Restart() {
    StopServer();
    StartServer();
  }
  // A worker whose toolchain is another than that of the records.
  void RegisterNewer() {
    Worker newer;
    newer.name = "workers/newer";
    newer.device = CpuDevice();
    newer.device_id = DeviceId(CpuDevice());
    newer.toolchain = "g++ 14";
    ASSERT_TRUE(server_->core()->roster.Register(newer).ok());
  }
  static std::string Text(v1::GetScheduleResponse response) {
    response.clear_lookup_ns();
    response.mutable_record()->clear_spec();
    return response.ShortDebugString();
  }
};

TEST_F(KeptAnswersTest, SayWhatTheLongerWaySays) {
  const auto worker = MakeWorker();
  const std::string record = MustTune(*worker);
  Restart();
  const v1::GetScheduleRequest request = GetRequest();
  const auto kept = Get(request);
  ASSERT_TRUE(kept.ok()) << kept.status();
  EXPECT_EQ(KeptHits(), 1);
  EXPECT_EQ(kept->record().name(), record);
  EXPECT_EQ(kept->match(), v1::MATCH_EXACT);
  EXPECT_GT(kept->lookup_ns(), 0);
  v1::GetScheduleRequest spaced = GetRequest();
  spaced.mutable_selection()->mutable_workload()->mutable_program()->append(" ");
  const auto longer = Get(spaced);
  ASSERT_TRUE(longer.ok()) << longer.status();
  EXPECT_EQ(KeptHits(), 1);
  EXPECT_EQ(Text(*kept), Text(*longer));
  EXPECT_TRUE(Get(request).ok());
  EXPECT_EQ(KeptHits(), 1) << "the second time the same bytes are in memory";
}

class ReadAheadTest : public KeptAnswersTest {
 protected:
  // Restarts, and waits until everything is in memory.
  void RestartAndRead() {
    StopServer();
    options_.read_ahead = true;
    StartServer();
    Await([&] { return server_->core()->counters.answers_read_ahead == 1; }, "it is read");
  }
  int64_t FromMemory() { return server_->core()->counters.lookups_from_memory; }
};

TEST_F(ReadAheadTest, WhatWasReadAheadNeedsNoStore) {
  const auto worker = MakeWorker();
  const std::string record = MustTune(*worker);
  Restart();
  const auto usual = Get(GetRequest());
  ASSERT_TRUE(usual.ok()) << usual.status();
  RestartAndRead();
  const int64_t before = KeptHits();
  const v1::GetScheduleRequest request = GetRequest();  // one: maps are sent in any order
  for (int n = 1; n <= 2; ++n) {
    const auto found = Get(request);
    ASSERT_TRUE(found.ok()) << found.status();
    EXPECT_EQ(Text(*found), Text(*usual));
    EXPECT_EQ(FromMemory(), n);
  }
  // The same question in other bytes: what was read ahead has been taken.
  v1::GetScheduleRequest signed_request = GetRequest();
  signed_request.mutable_selection()->set_signature(usual->record().signature());
  ASSERT_TRUE(Get(signed_request).ok());
  EXPECT_EQ(KeptHits(), before + 1);
}

TEST_F(ReadAheadTest, WhatIsPublishedLaterAnswers) {
  const auto worker = MakeWorker();
  MustTune(*worker, 1000);
  RestartAndRead();
  const auto again = MakeWorker("workers/b");
  const std::string better = MustTune(*again, 500);
  const auto found = Get(GetRequest());
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(found->record().name(), better);
  EXPECT_EQ(FromMemory(), 0);
}

TEST_F(ReadAheadTest, AWorkerOfAnotherToolchainMakesItStale) {
  {
    const auto worker = MakeWorker();
    MustTune(*worker);
  }
  RestartAndRead();
  RegisterNewer();
  EXPECT_EQ(ReasonOf(Get(GetRequest()).status()), "STALE");
  EXPECT_EQ(FromMemory(), 0);
}

TEST_F(ReadAheadTest, AWrongSignatureIsStillRefused) {
  const auto worker = MakeWorker();
  MustTune(*worker);
  RestartAndRead();
  v1::GetScheduleRequest wrong = GetRequest();
  wrong.mutable_selection()->set_signature(std::string(64, '0'));
  EXPECT_EQ(ReasonOf(Get(wrong).status()), "SIGNATURE_MISMATCH");
}

TEST_F(KeptAnswersTest, AnswerTheirVeryQuestionAlone) {
  const auto worker = MakeWorker();
  MustTune(*worker);
  Restart();
  for (const auto& change : std::vector<std::function<void(v1::Selection*)>>{
           [](v1::Selection* s) {
             (*s->mutable_workload()->mutable_dims())["M"].set_lo(65),
                 (*s->mutable_workload()->mutable_dims())["M"].set_hi(65);
           },
           [](v1::Selection* s) { (*s->mutable_workload()->mutable_alignment())["A"] = 64; },
           [](v1::Selection* s) { s->mutable_workload()->mutable_policy()->set_tf32(true); },
           [](v1::Selection* s) {
             s->mutable_objective()->set_cache(v1::Objective::CACHE_COLD);
           }}) {
    v1::GetScheduleRequest other = GetRequest();
    change(other.mutable_selection());
    EXPECT_TRUE(absl::IsNotFound(Get(other).status())) << other.ShortDebugString();
  }
  v1::GetScheduleRequest wrong = GetRequest();
  wrong.mutable_selection()->set_signature(std::string(64, '0'));
  EXPECT_EQ(ReasonOf(Get(wrong).status()), "SIGNATURE_MISMATCH");
  v1::GetScheduleRequest near = GetRequest();
  near.set_min_quality(v1::MATCH_NEAR);
  EXPECT_EQ(ReasonOf(Get(near).status()), "QUALITY_NOT_BUILT");
  EXPECT_TRUE(Get(GetRequest()).ok());
}

TEST_F(KeptAnswersTest, EndWithTheNextPublication) {
  const auto worker = MakeWorker();
  const std::string first = MustTune(*worker, 1000);
  EXPECT_EQ(Get(GetRequest())->record().name(), first);
  ASSERT_TRUE(store_.SetSalt(1).ok());  // so that the next winner need not be better
  Restart();
  EXPECT_TRUE(absl::IsNotFound(Get(GetRequest()).status())) << "of the salt of before";
  const auto again = MakeWorker("workers/b");
  const std::string second = MustTune(*again, 900);
  EXPECT_NE(first, second);
  EXPECT_EQ(Get(GetRequest())->record().name(), second);
  Restart();
  EXPECT_EQ(Get(GetRequest())->record().name(), second);
}

TEST_F(KeptAnswersTest, AreNotGivenWhereTheRecordIsStale) {
  {
    const auto worker = MakeWorker();
    MustTune(*worker);
  }
  Restart();
  RegisterNewer();
  EXPECT_EQ(ReasonOf(Get(GetRequest()).status()), "STALE");
  v1::GetScheduleRequest lenient = GetRequest();
  lenient.set_min_quality(v1::MATCH_STALE);
  EXPECT_EQ(Get(lenient)->match(), v1::MATCH_STALE);
}

TEST_F(KeptAnswersTest, AreMadeOfWhatWasImported) {
  const Workload workload = MatMul();
  ASSERT_TRUE(store_.PutArtifact(CompiledKernel()).ok());
  ASSERT_TRUE(store_.PutArtifact(KernelSource()).ok());
  Record record = RecordFor(Proposal(workload, CpuDevice()), workload);
  // Its spec is of another workload: whoever asks so must not be given this one.
  Record astray = record;
  astray.spec = MatMulSpec(7, 7, 7);
  EXPECT_EQ(ReasonOf(AnswerToKeep(astray).status()), "RECORD_OF_ANOTHER_SPEC");
  astray.key.objective.cache = CacheState::kCold;
  ASSERT_TRUE(store_.ImportRecords({record, astray}).ok());
  Restart();
  AwaitAnswers();
  EXPECT_TRUE(Get(GetRequest()).ok());
  EXPECT_EQ(KeptHits(), 1);
  v1::GetScheduleRequest other = GetRequest(7, 7, 7);
  other.mutable_selection()->mutable_objective()->set_cache(v1::Objective::CACHE_COLD);
  EXPECT_TRUE(absl::IsNotFound(Get(other).status()));
}

TEST_F(KeptAnswersTest, AWriteThatFailsCostsTimeAlone) {
  StopServer();
  const Workload workload = MatMul();
  ASSERT_TRUE(store_.PutArtifact(CompiledKernel()).ok());
  ASSERT_TRUE(store_.PutArtifact(KernelSource()).ok());
  ASSERT_TRUE(store_.ImportRecords({RecordFor(Proposal(workload, CpuDevice()), workload)}).ok());
  AnswerMaker maker(&store_, kAnswersVersion, AnswerToKeep);
  store_.FailWrites(absl::UnavailableError("full"));
  EXPECT_GT(maker.MakeSome(), absl::Seconds(1)) << "it does not come back at once";
  EXPECT_EQ(store_.Counters()["unanswered"], 1);
  store_.FailWrites(absl::OkStatus());
  maker.MakeSome();
  EXPECT_EQ(store_.Counters()["unanswered"], 0);
  StartServer();
}

}  // namespace
}  // namespace kiln::server
