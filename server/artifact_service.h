// SPDX-License-Identifier: Apache-2.0
// ArtifactService: compiled kernels and sources in chunks of at most 1 MiB, checked by digest on
// the way in (by the store) and on the way out.
#pragma once

#include "kiln/v1/artifact.grpc.pb.h"
#include "server/core.h"

namespace kiln::server {

class ArtifactService final : public v1::ArtifactService::CallbackService {
 public:
  explicit ArtifactService(Core* core) : core_(core) {}

  grpc::ServerWriteReactor<v1::ReadArtifactResponse>* ReadArtifact(
      grpc::CallbackServerContext* context, const v1::ReadArtifactRequest* request) override;
  grpc::ServerReadReactor<v1::WriteArtifactRequest>* WriteArtifact(
      grpc::CallbackServerContext* context, v1::WriteArtifactResponse* response) override;

 private:
  Core* const core_;
};

}  // namespace kiln::server
