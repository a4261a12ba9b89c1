// SPDX-License-Identifier: Apache-2.0
// Lists, capabilities, health, reflection's presence, metrics.
#include <gmock/gmock.h>

#include <arpa/inet.h>
#include <grpcpp/generic/generic_stub.h>
#include <sys/socket.h>
#include <unistd.h>

#include "proto/wire.h"
#include "tests/server/service_fixture.h"

namespace kiln::server {
namespace {

using ::testing::HasSubstr;

class ListingTest : public ServiceTest {
 protected:
  void Fill(int n) {
    const auto worker = MakeWorker();
    for (int i = 0; i < n; ++i) {
      ASSERT_TRUE(Tune(TuneRequest(64 + i)).ok());
      ASSERT_TRUE(worker->RunOne().ok());
    }
  }
  // One health check, by its raw messages: HealthCheckRequest{service = 1},
  // HealthCheckResponse{status = 1}.
  std::string Health(const std::string& service) {
    grpc::ByteBuffer response;
    std::string bytes;
    if (!service.empty()) bytes = std::string("\x0a") + static_cast<char>(service.size()) + service;
    grpc::Slice slice(bytes);
    const grpc::ByteBuffer request(&slice, 1);
    auto context = Context();
    grpc::GenericStub stub(channel_);
    grpc::CompletionQueue queue;
    auto call =
        stub.PrepareUnaryCall(context.get(), "/grpc.health.v1.Health/Check", request, &queue);
    call->StartCall();
    grpc::Status status;
    call->Finish(&response, &status, nullptr);
    void* tag = nullptr;
    bool ok = false;
    EXPECT_TRUE(queue.Next(&tag, &ok));
    if (!status.ok())
      return status.error_code() == grpc::StatusCode::NOT_FOUND ? "unknown"
                                                                : status.error_message();
    std::vector<grpc::Slice> slices;
    EXPECT_TRUE(response.Dump(&slices).ok());
    return slices.size() == 1 && slices[0].size() == 2 && slices[0].begin()[1] == 1 ? "serving"
                                                                                    : "not serving";
  }
  static std::string HttpGet(int port, const std::string& path) {
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    const std::string request = "GET " + path + " HTTP/1.0\r\n\r\n";
    EXPECT_EQ(write(fd, request.data(), request.size()), static_cast<ssize_t>(request.size()));
    std::string answer;
    char buffer[4096];
    for (ssize_t n; (n = read(fd, buffer, sizeof buffer)) > 0;) answer.append(buffer, n);
    close(fd);
    return answer;
  }
};

TEST_F(ListingTest, RecordsComeInPagesAndByFilter) {
  Fill(7);
  v1::ListRecordsRequest request;
  v1::ListRecordsResponse response;
  request.set_page_size(3);
  std::set<std::string> names;
  std::string signature;
  do {
    ASSERT_TRUE(kiln_->ListRecords(Context().get(), request, &response).ok());
    for (const auto& record : response.records()) {
      EXPECT_TRUE(names.insert(record.name()).second);
      EXPECT_TRUE(record.published());
      signature = record.signature();
    }
    request.set_page_token(response.next_page_token());
  } while (!response.next_page_token().empty());
  EXPECT_EQ(names.size(), 7u);
  request.set_page_token("");
  request.set_signature(signature);
  request.set_device("cpu");
  ASSERT_TRUE(kiln_->ListRecords(Context().get(), request, &response).ok());
  EXPECT_EQ(response.records_size(), 1);
  v1::GetRecordRequest get;
  v1::Record record;
  get.set_name(*names.begin());
  ASSERT_TRUE(kiln_->GetRecord(Context().get(), get, &record).ok());
  EXPECT_EQ(record.name(), *names.begin());
  get.set_name("records/none");
  EXPECT_EQ(kiln_->GetRecord(Context().get(), get, &record).error_code(),
            grpc::StatusCode::NOT_FOUND);
}

TEST_F(ListingTest, AnEmptyListIsASuccess) {
  v1::ListRecordsResponse records;
  v1::ListJobsResponse jobs;
  v1::ListWorkersResponse workers;
  EXPECT_TRUE(kiln_->ListRecords(Context().get(), {}, &records).ok());
  EXPECT_TRUE(kiln_->ListJobs(Context().get(), {}, &jobs).ok());
  EXPECT_TRUE(kiln_->ListWorkers(Context().get(), {}, &workers).ok());
  EXPECT_EQ(records.records_size() + jobs.jobs_size() + workers.workers_size(), 0);
}

TEST_F(ListingTest, APageThatDoesNotFitIntoAMessageIsCut) {
  Fill(1);
  Record large = store_.ListRecords({}, {})->items.front();
  large.plan.steps[0].entry = std::string(500, 'k');
  large.canonical = std::string(200'000, 'c');
  std::vector<Record> many;
  for (int i = 0; i < 60; ++i) {
    large.key.signature = absl::StrCat("signature-", i);
    many.push_back(large);
  }
  ASSERT_TRUE(store_.ImportRecords(many).ok());
  v1::ListRecordsRequest request;
  v1::ListRecordsResponse response;
  request.set_page_size(1000);
  int count = 0;
  do {
    const grpc::Status status = kiln_->ListRecords(Context().get(), request, &response);
    ASSERT_TRUE(status.ok()) << status.error_message();
    count += response.records_size();
    request.set_page_token(response.next_page_token());
  } while (!response.next_page_token().empty());
  EXPECT_EQ(count, 61);
}

TEST_F(ListingTest, JobsShowLiveProgressAndEndedOnesStay) {
  Fill(2);
  ASSERT_TRUE(Tune(TuneRequest(1000)).ok());
  v1::ListJobsRequest request;
  v1::ListJobsResponse response;
  ASSERT_TRUE(kiln_->ListJobs(Context().get(), request, &response).ok());
  EXPECT_EQ(response.jobs_size(), 3);
  request.set_live_only(true);
  ASSERT_TRUE(kiln_->ListJobs(Context().get(), request, &response).ok());
  ASSERT_EQ(response.jobs_size(), 1);
  EXPECT_EQ(response.jobs(0).progress().queue_position(), 1);
  EXPECT_EQ(response.jobs(0).progress().phase(), "queued");
  EXPECT_EQ(response.jobs(0).operation_count(), 1);
}

TEST_F(ListingTest, WorkersShowWhatTheyAreAndDo) {
  const auto a = MakeWorker("workers/a"), b = MakeWorker("workers/b");
  ASSERT_TRUE(Tune(TuneRequest()).ok());
  ASSERT_TRUE(a->Poll()->has_lease());
  v1::ListWorkersRequest request;
  v1::ListWorkersResponse response;
  request.set_page_size(1);
  ASSERT_TRUE(kiln_->ListWorkers(Context().get(), request, &response).ok());
  ASSERT_EQ(response.workers_size(), 1);
  EXPECT_EQ(response.workers(0).state(), "busy");
  EXPECT_EQ(response.workers(0).device().id(), DeviceId(CpuDevice()));
  EXPECT_FALSE(response.workers(0).job().empty());
  request.set_page_token(response.next_page_token());
  ASSERT_TRUE(kiln_->ListWorkers(Context().get(), request, &response).ok());
  ASSERT_EQ(response.workers_size(), 1);
  EXPECT_EQ(response.workers(0).name(), "workers/b");
  EXPECT_EQ(response.workers(0).state(), "idle");
  EXPECT_EQ(response.next_page_token(), "");
}

TEST_F(ListingTest, CapabilitiesSayVersionsLimitsAndWhatIsMissing) {
  v1::Capabilities capabilities;
  ASSERT_TRUE(kiln_->GetCapabilities(Context().get(), {}, &capabilities).ok());
  EXPECT_EQ(capabilities.api_low(), "v1");
  EXPECT_EQ(capabilities.limits().at("max_batch"), 1000);
  EXPECT_TRUE(capabilities.unimplemented().count("cuda"));
  EXPECT_LT(capabilities.priority_low(), capabilities.priority_high());
}

TEST_F(ListingTest, HealthKnowsEveryServiceByName) {
  for (const char* name : {"", "kiln.v1.KilnService", "kiln.v1.WorkerService",
                           "kiln.v1.ArtifactService", "google.longrunning.Operations"}) {
    EXPECT_EQ(Health(name), "serving") << name;
  }
  EXPECT_EQ(Health("kiln.v1.Nothing"), "unknown");
}

TEST_F(ListingTest, MetricsAreTextWithoutPerKeyLabels) {
  StopServer();
  options_.metrics_listen = "127.0.0.1:0";
  StartServer();
  Fill(1);
  ASSERT_TRUE(Get(GetRequest()).ok());
  const std::string text = HttpGet(server_->metrics_port(), "/metrics");
  EXPECT_THAT(text, HasSubstr("kiln_lookups_total{outcome=\"hit\"} 1"));
  EXPECT_THAT(text, HasSubstr("kiln_tunes_total{outcome=\"created\"} 1"));
  EXPECT_THAT(text, HasSubstr("kiln_jobs_ended_total{state=\"succeeded\"} 1"));
  EXPECT_THAT(text, HasSubstr("kiln_workers{state=\"present\"} 1"));
  EXPECT_EQ(text.find(MatMul().signature), std::string::npos);
}

TEST_F(ListingTest, ASecondServerOnThePortIsRefused) {
  Options same = options_;
  same.listen = server_->address();
  db::StoreFake store;
  const auto second = Server::Start(same, &store, &clock_, match_);
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(ReasonOf(second.status()), "ADDRESS_IN_USE");
}

}  // namespace
}  // namespace kiln::server
