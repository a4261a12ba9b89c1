// SPDX-License-Identifier: Apache-2.0
// WorkerService: workers pull, report and complete. Thin: the roster, the dispatcher, the job table
// and the publisher decide.
#pragma once

#include "kiln/v1/worker.grpc.pb.h"
#include "server/core.h"

namespace kiln::server {

class WorkerService final : public v1::WorkerService::CallbackService {
 public:
  explicit WorkerService(Core* core) : core_(core) {}

  using Context = grpc::CallbackServerContext;
  using Unary = grpc::ServerUnaryReactor;

  Unary* Register(Context* context, const v1::RegisterRequest* request,
                  v1::RegisterResponse* response) override;
  Unary* LeaseJob(Context* context, const v1::LeaseJobRequest* request,
                  v1::LeaseJobResponse* response) override;
  Unary* Heartbeat(Context* context, const v1::HeartbeatRequest* request,
                   v1::HeartbeatResponse* response) override;
  Unary* ReportOutcomes(Context* context, const v1::ReportOutcomesRequest* request,
                        v1::ReportOutcomesResponse* response) override;
  Unary* CompleteJob(Context* context, const v1::CompleteJobRequest* request,
                     v1::CompleteJobResponse* response) override;
  Unary* ReleaseJob(Context* context, const v1::ReleaseJobRequest* request,
                    v1::ReleaseJobResponse* response) override;

 private:
  absl::Status FillLease(const JobTable::Leased& leased, v1::Lease* message);

  Core* const core_;
};

}  // namespace kiln::server
