// SPDX-License-Identifier: Apache-2.0
// google.longrunning.Operations over the job table (AIP-151). A wait that runs out leaves the job
// alone and returns the operation as it is; only CancelOperation withdraws interest.
#pragma once

#include <memory>
#include <string>

#include "google/longrunning/operations.grpc.pb.h"
#include "server/core.h"
#include "server/operation_messages.h"

namespace kiln::server {

class OperationsService final : public google::longrunning::Operations::CallbackService {
 public:
  OperationsService(Core* core, OperationMessages* messages) : core_(core), messages_(messages) {}

  using Context = grpc::CallbackServerContext;
  using Unary = grpc::ServerUnaryReactor;
  using Message = google::longrunning::Operation;

  Unary* ListOperations(Context* context, const google::longrunning::ListOperationsRequest* request,
                        google::longrunning::ListOperationsResponse* response) override;
  Unary* GetOperation(Context* context, const google::longrunning::GetOperationRequest* request,
                      Message* response) override;
  Unary* DeleteOperation(Context* context,
                         const google::longrunning::DeleteOperationRequest* request,
                         google::protobuf::Empty* response) override;
  Unary* CancelOperation(Context* context,
                         const google::longrunning::CancelOperationRequest* request,
                         google::protobuf::Empty* response) override;
  Unary* WaitOperation(Context* context, const google::longrunning::WaitOperationRequest* request,
                       Message* response) override;

 private:
  absl::Status Fill(const std::string& name, Message* response);

  Core* const core_;
  OperationMessages* const messages_;
};

}  // namespace kiln::server
