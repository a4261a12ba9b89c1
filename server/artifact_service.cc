// SPDX-License-Identifier: Apache-2.0
#include "server/artifact_service.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "server/call_service.h"

namespace kiln::server {
namespace {

constexpr size_t kChunkBytes = 1 << 20;

bool IsDigest(const std::string& digest) {
  return digest.size() == 64 && std::all_of(digest.begin(), digest.end(), [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
         });
}

absl::Status BadDigest(const std::string& digest) {
  return InvalidField("BAD_DIGEST", "digest", digest, "no digest", "64 lower-case hex digits");
}

// Loads on the pool, then writes chunk after chunk from memory.
class Reader final : public grpc::ServerWriteReactor<v1::ReadArtifactResponse> {
 public:
  Reader(Core* core, const v1::ReadArtifactRequest& request) : offset_(request.offset()) {
    core->pool.Run([this, core, digest = request.digest()] { Begin(core, digest); });
  }
  void OnWriteDone(bool ok) override {
    if (!ok || offset_ >= artifact_.bytes.size()) {
      Finish(grpc::Status::OK);
    } else {
      WriteNext();
    }
  }
  void OnDone() override { delete this; }

 private:
  void Begin(Core* core, const std::string& digest) {
    if (!IsDigest(digest)) return Finish(wire::ToGrpc(BadDigest(digest)));
    absl::StatusOr<Artifact> artifact = core->store->GetArtifact(digest);
    if (!artifact.ok()) return Finish(wire::ToGrpc(artifact.status()));
    artifact_ = *std::move(artifact);
    const int64_t size = static_cast<int64_t>(artifact_.bytes.size());
    if (offset_ < 0 || offset_ > size) {
      return Finish(wire::ToGrpc(InvalidField("OUT_OF_RANGE", "offset", absl::StrCat(offset_),
                                              "outside the artifact", absl::StrCat("0..", size))));
    }
    message_.set_media(artifact_.media);
    message_.set_size(size);
    WriteNext();
  }
  void WriteNext() {
    const size_t length = std::min(kChunkBytes, artifact_.bytes.size() - offset_);
    message_.set_chunk(artifact_.bytes.substr(offset_, length));
    offset_ += static_cast<int64_t>(length);
    StartWrite(&message_);
  }

  int64_t offset_;
  Artifact artifact_;
  v1::ReadArtifactResponse message_;
};

// Collects the chunks in memory, bounded by what was announced, and gives them to the store on the
// pool.
class Writer final : public grpc::ServerReadReactor<v1::WriteArtifactRequest> {
 public:
  Writer(Core* core, v1::WriteArtifactResponse* response) : core_(core), response_(response) {
    StartRead(&message_);
  }

  void OnReadDone(bool ok) override {
    if (!ok) {
      core_->pool.Run([this] { End(wire::ToGrpc(Store())); });
      return;
    }
    if (first_) {
      first_ = false;
      core_->pool.Run([this] { Open(); });
      return;
    }
    Take();
  }
  void OnDone() override { delete this; }

 private:
  void End(grpc::Status status) {
    if (!ended_.exchange(true)) Finish(std::move(status));
  }
  void Open() {
    artifact_.digest = message_.digest();
    artifact_.media = message_.media();
    size_ = message_.size();
    if (!IsDigest(artifact_.digest)) return End(wire::ToGrpc(BadDigest(artifact_.digest)));
    if (size_ < 0 || size_ > core_->options.max_artifact_bytes) {
      return End(wire::ToGrpc(
          InvalidField("OUT_OF_RANGE", "size", absl::StrCat(size_), "out of range",
                       absl::StrCat("0..", core_->options.max_artifact_bytes, " bytes"))));
    }
    const absl::StatusOr<bool> there = core_->store->HasArtifact(artifact_.digest);
    if (!there.ok()) return End(wire::ToGrpc(there.status()));
    if (*there) {
      response_->set_stored_before(true);
      return End(grpc::Status::OK);
    }
    Take();
  }
  void Take() {
    if (artifact_.bytes.size() + message_.chunk().size() > static_cast<size_t>(size_)) {
      return End(wire::ToGrpc(InvalidField(
          "WRONG_SIZE", "chunk", absl::StrCat(artifact_.bytes.size() + message_.chunk().size()),
          "more than was announced", absl::StrCat(size_, " bytes"))));
    }
    artifact_.bytes.append(message_.chunk());
    StartRead(&message_);
  }
  absl::Status Store() {
    if (first_)
      return InvalidField("MISSING_FIELD", "digest", "", "missing",
                          "a first message with digest, media and size");
    if (artifact_.bytes.size() != static_cast<size_t>(size_)) {
      return InvalidField("WRONG_SIZE", "size", absl::StrCat(artifact_.bytes.size()),
                          "not what was announced", absl::StrCat(size_, " bytes"));
    }
    const std::string digest = Sha256Hex(artifact_.bytes);
    if (digest != artifact_.digest) {
      return InvalidField("DIGEST_MISMATCH", "digest", artifact_.digest, "not that of the bytes",
                          digest);
    }
    return core_->store->PutArtifact(artifact_);
  }

  Core* const core_;
  v1::WriteArtifactResponse* const response_;
  v1::WriteArtifactRequest message_;
  Artifact artifact_;
  int64_t size_ = 0;
  bool first_ = true;
  std::atomic<bool> ended_{false};
};

}  // namespace

grpc::ServerWriteReactor<v1::ReadArtifactResponse>* ArtifactService::ReadArtifact(
    grpc::CallbackServerContext*, const v1::ReadArtifactRequest* request) {
  return new Reader(core_, *request);
}

grpc::ServerReadReactor<v1::WriteArtifactRequest>* ArtifactService::WriteArtifact(
    grpc::CallbackServerContext*, v1::WriteArtifactResponse* response) {
  return new Writer(core_, response);
}

}  // namespace kiln::server
