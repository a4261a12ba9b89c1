// SPDX-License-Identifier: Apache-2.0
// Artifacts: fetched in chunks, resumed after an interruption, checked against their digest, kept
// by digest.
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "client/connection.h"
#include "client/runtime/sha256.h"
#include "proto/contract/error.h"

namespace kiln::client {
namespace {

constexpr int64_t kMaxArtifactBytes = int64_t{1} << 30;

bool IsDigest(const std::string& text) {
  return text.size() == 64 && text.find_first_not_of("0123456789abcdef") == std::string::npos;
}

bool HasDigest(const std::string& bytes, const std::string& digest) {
  return runtime::Sha256Hex(bytes.data(), bytes.size()) == digest;
}

std::optional<std::string> LoadCached(const std::string& directory, const std::string& digest) {
  if (directory.empty()) return std::nullopt;
  std::ifstream file(std::filesystem::path(directory) / digest, std::ios::binary);
  if (!file) return std::nullopt;
  std::string bytes(std::istreambuf_iterator<char>(file), {});
  if (!HasDigest(bytes, digest)) return std::nullopt;  // torn or tampered with: as good as none
  return bytes;
}

// A cache that cannot be written goes without.
void SaveCached(const std::string& directory, const std::string& digest, const std::string& bytes) {
  if (directory.empty()) return;
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  const std::filesystem::path path = std::filesystem::path(directory) / digest;
  const std::filesystem::path temporary = absl::StrCat(path.string(), ".", getpid(), ".part");
  std::ofstream file(temporary, std::ios::binary | std::ios::trunc);
  file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  file.close();
  if (file.good()) {
    std::filesystem::rename(temporary, path, error);
  } else {
    std::filesystem::remove(temporary, error);
  }
}

}  // namespace

absl::StatusOr<std::string> Client::FetchArtifact(const std::string& digest) {
  if (!IsDigest(digest))
    return InvalidField("INVALID_DIGEST", "digest", digest, "no digest",
                        "64 lower-case hex digits");
  if (std::optional<std::string> cached = LoadCached(wire_->options.cache_directory, digest))
    return *std::move(cached);
  std::string bytes;
  KILN_RETURN_IF_ERROR(wire_->Call([&](grpc::ClientContext* context) {
    v1::ReadArtifactRequest request;
    request.set_digest(digest);
    request.set_offset(static_cast<int64_t>(bytes.size()));  // where an interrupted read stopped
    const auto reader = wire_->artifacts->ReadArtifact(context, request);
    v1::ReadArtifactResponse response;
    while (reader->Read(&response)) {
      bytes += response.chunk();
      if (static_cast<int64_t>(bytes.size()) <= kMaxArtifactBytes) continue;
      context->TryCancel();
      (void)reader->Finish();
      return grpc::Status(grpc::StatusCode::DATA_LOSS, "the artifact does not end");
    }
    return reader->Finish();
  }));
  if (!HasDigest(bytes, digest)) {
    return MakeError(absl::StatusCode::kDataLoss,
                     absl::StrCat("artifact ", digest, ": the ", bytes.size(),
                                  " bytes that came have another digest"),
                     {"DIGEST_MISMATCH", {{"digest", digest}}});
  }
  SaveCached(wire_->options.cache_directory, digest, bytes);
  return bytes;
}

ArtifactSource Client::Artifacts() {
  return [this](const std::string& digest) { return FetchArtifact(digest); };
}

}  // namespace kiln::client
