// SPDX-License-Identifier: Apache-2.0
// KilnService: what clients call. TuneSchedule (kiln_service.cc) is the story of the whole server
// in one function. Lookups: lookup_calls.cc; lists and single values: listing_calls.cc;
// WatchOperation: watch_call.cc.
#pragma once

#include <memory>
#include <string>

#include "grpcpp/support/byte_buffer.h"
#include "kiln/v1/kiln.grpc.pb.h"
#include "server/core.h"
#include "server/operation_messages.h"

namespace kiln::server {

// GetSchedule is taken raw: an answer that was given before is sent again without being built
// again.
using KilnCallbackService = v1::KilnService::WithRawCallbackMethod_GetSchedule<
    v1::KilnService::WithCallbackMethod_BatchGetSchedules<
        v1::KilnService::WithCallbackMethod_TuneSchedule<
            v1::KilnService::WithCallbackMethod_WatchOperation<
                v1::KilnService::WithCallbackMethod_ListRecords<
                    v1::KilnService::WithCallbackMethod_GetRecord<
                        v1::KilnService::WithCallbackMethod_ListJobs<
                            v1::KilnService::WithCallbackMethod_GetJob<
                                v1::KilnService::WithCallbackMethod_ListWorkers<
                                    v1::KilnService::WithCallbackMethod_GetCapabilities<
                                        v1::KilnService::Service>>>>>>>>>>;

class KilnService final : public KilnCallbackService {
 public:
  KilnService(Core* core, OperationMessages* messages);

  using Context = grpc::CallbackServerContext;
  using Unary = grpc::ServerUnaryReactor;

  Unary* GetSchedule(Context* context, const grpc::ByteBuffer* request,
                     grpc::ByteBuffer* response) override;
  Unary* BatchGetSchedules(Context* context, const v1::BatchGetSchedulesRequest* request,
                           v1::BatchGetSchedulesResponse* response) override;
  Unary* TuneSchedule(Context* context, const v1::TuneScheduleRequest* request,
                      google::longrunning::Operation* response) override;
  grpc::ServerWriteReactor<google::longrunning::Operation>* WatchOperation(
      Context* context, const v1::WatchOperationRequest* request) override;
  Unary* ListRecords(Context* context, const v1::ListRecordsRequest* request,
                     v1::ListRecordsResponse* response) override;
  Unary* GetRecord(Context* context, const v1::GetRecordRequest* request,
                   v1::Record* response) override;
  Unary* ListJobs(Context* context, const v1::ListJobsRequest* request,
                  v1::ListJobsResponse* response) override;
  Unary* GetJob(Context* context, const v1::GetJobRequest* request, v1::Job* response) override;
  Unary* ListWorkers(Context* context, const v1::ListWorkersRequest* request,
                     v1::ListWorkersResponse* response) override;
  Unary* GetCapabilities(Context* context, const v1::GetCapabilitiesRequest* request,
                         v1::Capabilities* response) override;

  // Reads some of the kept answers into memory before anybody asks, newest first, while there is
  // room: a restart costs lookups nothing. Says whether there is more to read.
  bool ReadAhead();

 private:
  // A response as it is sent, or the error; with what it held true of.
  struct ReadyAnswer {
    grpc::Status status;
    std::shared_ptr<const std::string> response;  // without lookup_ns
    Freshness fresh;
  };
  using ReadyPtr = std::shared_ptr<const ReadyAnswer>;
  // Read ahead, when so much was published; it becomes a ReadyAnswer for the first who asks.
  struct AheadAnswer {
    db::StoredAnswer answer;
    int64_t publications = 0;
  };
  using AheadPtr = std::shared_ptr<const AheadAnswer>;
  // One of the two, in one budget of memory.
  struct Cached {
    ReadyPtr ready;
    AheadPtr ahead;
  };

  ReadyPtr FindReady(const std::string& key);
  // What was read ahead for the question, and is exact still.
  ReadyPtr TakeAhead(const std::string& question, const std::string& device_id);
  // The answer that is kept for the very question, if one is; remembered.
  ReadyPtr FindKept(const v1::GetScheduleRequest& request, const std::string& key);
  void Remember(const std::string& key, const ReadyPtr& ready);
  // FindKept, else builds; remembers. `key` is that of the request as it came.
  ReadyPtr MakeReady(const v1::GetScheduleRequest& request, const std::string& key);
  absl::StatusOr<std::string> BuildAnswer(const v1::GetScheduleRequest& request,
                                          const Question& question);
  absl::StatusOr<JobTable::OperationView> RequestedBefore(const std::string& client,
                                                          const std::string& request_id);
  Job Proposal(const Question& question, const Budget& budget,
               const v1::TuneScheduleRequest& request, const std::string& client) const;

  Core* const core_;
  OperationMessages* const messages_;
  const size_t cache_limit_;
  Lru<Cached> cache_;
  int64_t ahead_ = 0;  // ReadAhead's place in the store; one thread's at a time
};

}  // namespace kiln::server
