// SPDX-License-Identifier: Apache-2.0
#include "worker/agent.h"

#include <grpcpp/grpcpp.h>

#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kiln/v1/artifact.grpc.pb.h"
#include "kiln/v1/worker.grpc.pb.h"
#include "proto/wire.h"
#include "tests/worker/job_fixture.h"

namespace kiln::worker {
namespace {

// A server that remembers what it is told and answers as the test says.
class ServerFake : public v1::WorkerService::Service, public v1::ArtifactService::Service {
 public:
  grpc::Status Register(grpc::ServerContext*, const v1::RegisterRequest* request,
                        v1::RegisterResponse* response) override {
    std::lock_guard lock(mutex_);
    registrations.push_back(*request);
    known_ = true;
    response->mutable_heartbeat_interval()->set_nanos(50'000'000);
    response->set_keep_lease(keep_lease);
    return grpc::Status::OK;
  }
  grpc::Status LeaseJob(grpc::ServerContext*, const v1::LeaseJobRequest*,
                        v1::LeaseJobResponse* response) override {
    std::unique_lock lock(mutex_);
    if (!known_) return Unknown();
    changed_.wait_for(lock, std::chrono::milliseconds(200), [this] { return !leases_.empty(); });
    if (leases_.empty()) return grpc::Status::OK;
    *response->mutable_lease() = leases_.front();
    leases_.pop_front();
    return grpc::Status::OK;
  }
  grpc::Status Heartbeat(grpc::ServerContext*, const v1::HeartbeatRequest* request,
                         v1::HeartbeatResponse* response) override {
    std::lock_guard lock(mutex_);
    if (!known_) return Unknown();
    if (lost)
      return wire::ToGrpc(
          MakeError(absl::StatusCode::kAborted, "an old epoch", {"LEASE_LOST", {}}));
    beats.push_back(*request);
    response->set_cancel(cancel);
    return grpc::Status::OK;
  }
  grpc::Status ReportOutcomes(grpc::ServerContext*, const v1::ReportOutcomesRequest* request,
                              v1::ReportOutcomesResponse*) override {
    std::lock_guard lock(mutex_);
    for (const v1::Outcome& outcome : request->outcomes()) outcomes.push_back(outcome);
    return grpc::Status::OK;
  }
  grpc::Status CompleteJob(grpc::ServerContext*, const v1::CompleteJobRequest* request,
                           v1::CompleteJobResponse*) override {
    std::lock_guard lock(mutex_);
    if (!known_) return Unknown();
    completions.push_back(*request);
    return grpc::Status::OK;
  }
  grpc::Status ReleaseJob(grpc::ServerContext*, const v1::ReleaseJobRequest* request,
                          v1::ReleaseJobResponse*) override {
    std::lock_guard lock(mutex_);
    releases.push_back(*request);
    return grpc::Status::OK;
  }
  grpc::Status WriteArtifact(grpc::ServerContext*,
                             grpc::ServerReader<v1::WriteArtifactRequest>* reader,
                             v1::WriteArtifactResponse*) override {
    v1::WriteArtifactRequest request;
    std::string digest, bytes;
    while (reader->Read(&request)) {
      if (!request.digest().empty()) digest = request.digest();
      bytes += request.chunk();
    }
    std::lock_guard lock(mutex_);
    artifacts[digest] = bytes;
    return grpc::Status::OK;
  }

  void Offer(v1::Lease lease) {
    std::lock_guard lock(mutex_);
    leases_.push_back(std::move(lease));
    changed_.notify_all();
  }
  void Forget() {
    std::lock_guard lock(mutex_);
    known_ = false;
  }
  template <typename T>
  T With(const std::function<T(ServerFake&)>& look) {
    std::lock_guard lock(mutex_);
    return look(*this);
  }

  bool keep_lease = true, cancel = false, lost = false;
  std::vector<v1::RegisterRequest> registrations;
  std::vector<v1::HeartbeatRequest> beats;
  std::vector<v1::Outcome> outcomes;
  std::vector<v1::CompleteJobRequest> completions;
  std::vector<v1::ReleaseJobRequest> releases;
  std::map<std::string, std::string> artifacts;

 private:
  static grpc::Status Unknown() {
    return wire::ToGrpc(
        MakeError(absl::StatusCode::kNotFound, "no such worker", {"WORKER_UNKNOWN", {}}));
  }
  std::mutex mutex_;
  std::condition_variable changed_;
  bool known_ = false;
  std::deque<v1::Lease> leases_;
};

class AgentTest : public testing::Test {
 protected:
  void SetUp() override {
    address_ = "unix:" + folder_.path() + "/socket";
    auto made = TestWorker::Make(temp_.path());
    ASSERT_TRUE(made.ok()) << made.status();
    worker_ = *std::move(made);
    Serve();
  }
  void TearDown() override { Stop(); }

  void Serve() {
    grpc::ServerBuilder builder;
    builder.AddListeningPort(address_, grpc::InsecureServerCredentials());
    builder.RegisterService(static_cast<v1::WorkerService::Service*>(&fake_));
    builder.RegisterService(static_cast<v1::ArtifactService::Service*>(&fake_));
    server_ = builder.BuildAndStart();
    ASSERT_NE(server_, nullptr);
  }
  void StopServer() {
    server_->Shutdown(std::chrono::system_clock::now());
    server_.reset();
  }
  void StartAgent(const Frontend& frontend) {
    JobTools tools = worker_.Tools(frontend);
    tools.run_limit = absl::Minutes(5);
    agent_ =
        std::make_unique<Agent>(AgentOptions{.server = address_, .poll = absl::Seconds(1)}, tools);
    thread_ = std::thread([this] { status_ = agent_->Run([this] { ready_ = true; }); });
  }
  void Stop() {
    if (!thread_.joinable()) return;
    agent_->Drain();
    thread_.join();
  }
  v1::Lease LeaseOf(const JobLease& job) {
    v1::Lease lease;
    lease.set_job(job.job);
    lease.set_epoch(3);
    wire::ToWire(job.spec, lease.mutable_spec());
    lease.set_signature(job.signature);
    wire::ToWire(job.device, lease.mutable_device());
    wire::ToWire(job.objective, lease.mutable_objective());
    wire::ToWire(job.budget, lease.mutable_budget());
    lease.set_first_sequence(5);
    return lease;
  }
  bool Await(const std::function<bool(ServerFake&)>& holds,
             absl::Duration limit = absl::Seconds(120)) {
    return Eventually([&] { return fake_.With<bool>(holds); }, limit);
  }

  ScratchFolder folder_, temp_;
  std::string address_;
  TestWorker worker_;
  ServerFake fake_;
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<Agent> agent_;
  std::thread thread_;
  std::atomic<bool> ready_{false};
  absl::Status status_;
};

TEST_F(AgentTest, RegistersRunsALeaseAndUploadsBeforeItCompletes) {
  const auto frontend =
      MakeFaultyFrontend({.faults = {Fault::kNone, Fault::kBadSource}, .library = false});
  StartAgent(*frontend);
  ASSERT_TRUE(Await([](ServerFake& s) { return !s.registrations.empty(); }));
  EXPECT_TRUE(Eventually([&] { return ready_.load(); }));
  const v1::RegisterRequest registration = fake_.registrations.front();
  EXPECT_THAT(registration.name(), testing::StartsWith("workers/"));
  EXPECT_EQ(registration.device().id(), DeviceId(worker_.device));
  EXPECT_THAT(registration.families(), testing::ElementsAre("faulty/1"));
  EXPECT_EQ(registration.timer(), "clock");

  fake_.Offer(LeaseOf(MatmulLease(worker_, 24, 24, 24)));
  ASSERT_TRUE(Await([](ServerFake& s) { return !s.completions.empty(); }));
  Stop();
  const v1::CompleteJobRequest& done = fake_.completions.front();
  EXPECT_EQ(done.lease_epoch(), 3);
  ASSERT_TRUE(done.has_record()) << done.ShortDebugString();
  EXPECT_EQ(done.record().worker(), registration.name());
  EXPECT_GT(done.record().artifacts_size(), 1);
  for (const std::string& digest : done.record().artifacts()) {
    ASSERT_EQ(fake_.artifacts.count(digest), 1u);
    EXPECT_EQ(Sha256Hex(fake_.artifacts[digest]), digest);
  }
  ASSERT_EQ(fake_.outcomes.size(), 2u);
  EXPECT_EQ(fake_.outcomes[0].sequence(), 5);
  EXPECT_EQ(fake_.outcomes[1].sequence(), 6);
  EXPECT_FALSE(fake_.beats.empty());
  EXPECT_TRUE(status_.ok()) << status_;
}

TEST_F(AgentTest, ADrainHandsTheJobBack) {
  const auto frontend = MakeFaultyFrontend({.faults = {Fault::kEndlessLoop}});
  StartAgent(*frontend);
  fake_.Offer(LeaseOf(MatmulLease(worker_, 16, 16, 16)));
  ASSERT_TRUE(Eventually([] { return !BenchChildren().empty(); }, absl::Seconds(120)));
  Stop();
  ASSERT_EQ(fake_.releases.size(), 1u);
  EXPECT_EQ(fake_.releases[0].lease_epoch(), 3);
  EXPECT_TRUE(fake_.completions.empty());
  EXPECT_TRUE(BenchChildren().empty());
}

TEST_F(AgentTest, ALostLeaseStopsTheJobAndKeepsNothing) {
  const auto frontend = MakeFaultyFrontend({.faults = {Fault::kEndlessLoop}});
  StartAgent(*frontend);
  fake_.Offer(LeaseOf(MatmulLease(worker_, 16, 16, 16)));
  ASSERT_TRUE(Eventually([] { return !BenchChildren().empty(); }, absl::Seconds(120)));
  fake_.With<int>([](ServerFake& s) { return s.lost = true, 0; });
  EXPECT_TRUE(Eventually([] { return BenchChildren().empty(); }, absl::Seconds(20)));
  Stop();
  EXPECT_TRUE(fake_.completions.empty());
  EXPECT_TRUE(fake_.releases.empty());
}

TEST_F(AgentTest, ACancelledJobEndsAsCancelled) {
  const auto frontend = MakeFaultyFrontend({.faults = {Fault::kEndlessLoop}});
  StartAgent(*frontend);
  fake_.Offer(LeaseOf(MatmulLease(worker_, 16, 16, 16)));
  ASSERT_TRUE(Eventually([] { return !BenchChildren().empty(); }, absl::Seconds(120)));
  fake_.With<int>([](ServerFake& s) { return s.cancel = true, 0; });
  ASSERT_TRUE(Await([](ServerFake& s) { return !s.completions.empty(); }));
  EXPECT_EQ(fake_.With<int>([](ServerFake& s) { return s.completions.front().failure().code(); }),
            static_cast<int>(absl::StatusCode::kCancelled));
}

// The server goes away in mid-job, comes back without memory, and takes the worker with its lease
// again.
TEST_F(AgentTest, AServerThatWasRestartedGetsTheWorkerAndItsJobBack) {
  const auto frontend =
      MakeFaultyFrontend({.faults = {Fault::kNone}, .variants = 40, .library = false});
  StartAgent(*frontend);
  JobLease job = MatmulLease(worker_, 48, 48, 48);
  fake_.Offer(LeaseOf(job));
  ASSERT_TRUE(Await([](ServerFake& s) { return s.outcomes.size() >= 2; }));
  StopServer();
  fake_.Forget();
  const size_t before = fake_.outcomes.size();
  Serve();
  ASSERT_TRUE(Await([](ServerFake& s) { return !s.completions.empty(); }));
  Stop();
  EXPECT_TRUE(fake_.completions.front().has_record());
  ASSERT_GE(fake_.registrations.size(), 2u);
  EXPECT_EQ(fake_.registrations.back().job(), job.job);
  EXPECT_EQ(fake_.registrations.back().lease_epoch(), 3);
  // Nothing that happened meanwhile is missing; what was sent twice carries its number.
  EXPECT_GT(fake_.outcomes.size(), before);
  std::set<int> sequences;
  for (const v1::Outcome& outcome : fake_.outcomes) sequences.insert(outcome.sequence());
  EXPECT_EQ(*sequences.rbegin() - *sequences.begin() + 1, static_cast<int>(sequences.size()));
}

TEST_F(AgentTest, ARestartedServerThatGaveTheJobAwayStopsIt) {
  const auto frontend = MakeFaultyFrontend({.faults = {Fault::kEndlessLoop}});
  StartAgent(*frontend);
  fake_.Offer(LeaseOf(MatmulLease(worker_, 16, 16, 16)));
  ASSERT_TRUE(Eventually([] { return !BenchChildren().empty(); }, absl::Seconds(120)));
  fake_.With<int>([](ServerFake& s) { return s.keep_lease = false, 0; });
  fake_.Forget();
  EXPECT_TRUE(Eventually([] { return BenchChildren().empty(); }, absl::Seconds(20)));
  Stop();
  EXPECT_TRUE(fake_.completions.empty());
}

TEST_F(AgentTest, ALeaseOfAnotherVersionFailsWithTheReason) {
  const auto frontend = MakeFaultyFrontend({.faults = {Fault::kNone}});
  StartAgent(*frontend);
  v1::Lease lease = LeaseOf(MatmulLease(worker_, 16, 16, 16));
  lease.set_signature(std::string(64, '0'));
  fake_.Offer(lease);
  ASSERT_TRUE(Await([](ServerFake& s) { return !s.completions.empty(); }));
  EXPECT_EQ(fake_.With<std::string>(
                [](ServerFake& s) { return s.completions.front().failure().reason(); }),
            "VERSION_SKEW");
}

}  // namespace
}  // namespace kiln::worker
