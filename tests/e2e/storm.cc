// SPDX-License-Identifier: Apache-2.0
// storm ADDRESS CALLS M N K TRIALS SECONDS: so many callers at once tune one matrix product and
// wait for it. Prints one JSON object with what they were told: the distinct jobs, operations,
// records, and the errors by code.
#include <grpcpp/grpcpp.h>

#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "google/longrunning/operations.grpc.pb.h"
#include "kiln/v1/kiln.grpc.pb.h"
#include "nlohmann/json.hpp"

namespace {

using google::longrunning::Operation;

constexpr char kProgram[] =
    "operator MatMul(M, N, K) { input A[M,K], B[K,N]; output C[M,N] = sum(A[i,k] * B[k,j]); }";
// Callers come over several connections, as the machines of a farm would.
constexpr int kChannels = 16;
// A wait that runs out is asked again; the whole storm ends by the caller's deadline.
constexpr int kWaitSeconds = 60;

struct Tally {
  std::mutex mutex;
  std::condition_variable changed;
  int open = 0;
  std::set<std::string> jobs, operations, records;
  std::map<std::string, int> errors;
  int joined = 0, answered = 0;
};

// One caller: TuneSchedule, then WaitOperation until it is done. Lives until the tally has its end.
class Caller {
 public:
  Caller(const std::shared_ptr<grpc::Channel>& channel, Tally* tally)
      : kiln_(kiln::v1::KilnService::NewStub(channel)),
        operations_(google::longrunning::Operations::NewStub(channel)),
        tally_(tally) {}

  void Tune(const kiln::v1::TuneScheduleRequest& request) {
    request_ = request;
    context_ = std::make_unique<grpc::ClientContext>();
    context_->set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(120));
    kiln_->async()->TuneSchedule(context_.get(), &request_, &operation_,
                                 [this](const grpc::Status& status) { Next(status); });
  }

 private:
  void Next(const grpc::Status& status) {
    if (!status.ok()) return End(status.error_code(), status.error_message());
    if (operation_.done())
      return End(static_cast<grpc::StatusCode>(operation_.error().code()),
                 operation_.error().message());
    wait_.set_name(operation_.name());
    wait_.mutable_timeout()->set_seconds(kWaitSeconds);
    waiting_ = std::make_unique<grpc::ClientContext>();
    waiting_->set_deadline(std::chrono::system_clock::now() +
                           std::chrono::seconds(kWaitSeconds + 30));
    operations_->async()->WaitOperation(waiting_.get(), &wait_, &waited_,
                                        [this](const grpc::Status& status) {
                                          operation_ = waited_;
                                          Next(status);
                                        });
  }

  void End(grpc::StatusCode code, const std::string& message) {
    kiln::v1::TuneMetadata metadata;
    kiln::v1::TuneScheduleResponse response;
    operation_.metadata().UnpackTo(&metadata);
    const bool answered = operation_.response().UnpackTo(&response);
    std::lock_guard<std::mutex> lock(tally_->mutex);
    if (code != grpc::StatusCode::OK) ++tally_->errors[std::to_string(code) + " " + message];
    if (!operation_.name().empty()) tally_->operations.insert(operation_.name());
    if (!metadata.job().name().empty()) tally_->jobs.insert(metadata.job().name());
    if (metadata.joined()) ++tally_->joined;
    if (answered) {
      ++tally_->answered;
      tally_->records.insert(response.record().name());
    }
    --tally_->open;
    tally_->changed.notify_all();
  }

  std::unique_ptr<kiln::v1::KilnService::Stub> kiln_;
  std::unique_ptr<google::longrunning::Operations::Stub> operations_;
  Tally* tally_;
  kiln::v1::TuneScheduleRequest request_;
  google::longrunning::WaitOperationRequest wait_;
  Operation operation_, waited_;
  std::unique_ptr<grpc::ClientContext> context_, waiting_;
};

kiln::v1::TuneScheduleRequest Request(char** argv) {
  kiln::v1::TuneScheduleRequest request;
  auto* workload = request.mutable_selection()->mutable_workload();
  workload->set_program(kProgram);
  const char* names[] = {"M", "N", "K"};
  for (int i = 0; i < 3; ++i) {
    auto& range = (*workload->mutable_dims())[names[i]];
    range.set_lo(std::atoll(argv[i]));
    range.set_hi(std::atoll(argv[i]));
  }
  request.mutable_budget()->set_trials(std::atoll(argv[3]));
  request.mutable_budget()->mutable_duration()->set_seconds(std::atoll(argv[4]));
  return request;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 8) {
    std::fprintf(stderr, "usage: storm ADDRESS CALLS M N K TRIALS SECONDS\n");
    return 2;
  }
  const int calls = std::atoi(argv[2]);
  const kiln::v1::TuneScheduleRequest request = Request(argv + 3);
  std::vector<std::shared_ptr<grpc::Channel>> channels;
  for (int i = 0; i < kChannels; ++i) {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    channels.push_back(
        grpc::CreateCustomChannel(argv[1], grpc::InsecureChannelCredentials(), arguments));
  }
  Tally tally;
  tally.open = calls;
  std::deque<Caller> callers;
  for (int i = 0; i < calls; ++i) callers.emplace_back(channels[i % kChannels], &tally);
  for (Caller& caller : callers) caller.Tune(request);

  std::unique_lock<std::mutex> lock(tally.mutex);
  tally.changed.wait(lock, [&] { return tally.open == 0; });
  const nlohmann::json told = {{"calls", calls},
                               {"answered", tally.answered},
                               {"joined", tally.joined},
                               {"jobs", tally.jobs},
                               {"operations", tally.operations.size()},
                               {"records", tally.records},
                               {"errors", tally.errors}};
  std::printf("%s\n", told.dump().c_str());
  return tally.errors.empty() && tally.answered == calls ? 0 : 1;
}
