// SPDX-License-Identifier: Apache-2.0
// absl::Status <-> grpc::Status and google.rpc.Status, with reason and details.
#include <algorithm>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"
#include "grpcpp/support/status.h"
#if __has_include("compat/error_info.pb.h")
#include "compat/error_info.pb.h"  // the packaged google protos are too old to have it
#endif
#include "proto/wire.h"
#include "proto/wire_values.h"

namespace kiln::wire {
namespace {

constexpr char kDomain[] = "kiln";
constexpr char kRetryAfter[] = "retry_after_seconds";
// A client that nobody configured accepts 8 KiB of metadata (GRPC_ARG_MAX_METADATA_SIZE); past that
// it sees RESOURCE_EXHAUSTED instead of the error. The rest is for the other trailers.
constexpr size_t kMetadataBytes = 7000;
constexpr size_t kDetailBytes = 512;

// Valid UTF-8 of at most `limit` bytes: a proto string that is none breaks clients in stricter
// languages, and an error may quote a single byte of a character.
std::string CleanText(absl::string_view text, size_t limit) {
  std::string out;
  size_t i = 0;
  while (i < text.size()) {
    const unsigned char c = text[i];
    size_t length = c < 0x80 ? 1 : c >= 0xf0 && c < 0xf5 ? 4 : c >= 0xe0 ? 3 : c >= 0xc2 ? 2 : 0;
    bool good = length > 0 && c < 0xf5 && i + length <= text.size();
    for (size_t j = 1; good && j < length; ++j)
      good = (static_cast<unsigned char>(text[i + j]) & 0xc0) == 0x80;
    // Overlong forms and surrogates.
    if (good && length == 3 && c == 0xe0) good = static_cast<unsigned char>(text[i + 1]) >= 0xa0;
    if (good && length == 3 && c == 0xed) good = static_cast<unsigned char>(text[i + 1]) < 0xa0;
    if (good && length == 4 && c == 0xf0) good = static_cast<unsigned char>(text[i + 1]) >= 0x90;
    if (good && length == 4 && c == 0xf4) good = static_cast<unsigned char>(text[i + 1]) < 0x90;
    if (!good) length = 1;
    if (out.size() + length > limit) {
      absl::StrAppend(&out, " [", text.size() - i, " bytes cut]");
      break;
    }
    if (good) {
      out.append(text.data() + i, length);
    } else {
      out.push_back('?');
    }
    i += length;
  }
  return out;
}

// Of grpc-message, which is percent-encoded.
size_t EncodedBytes(absl::string_view text) {
  size_t bytes = 0;
  for (const char c : text) bytes += c >= ' ' && c <= '~' && c != '%' ? 1 : 3;
  return bytes;
}

double RetrySeconds(const absl::Status& status, const ErrorInfo& info) {
  double seconds = status.code() == absl::StatusCode::kUnavailable ? 1 : 5;
  if (const auto it = info.details.find(kRetryAfter); it != info.details.end()) {
    if (it->second == "never") return -1;
    double given = 0;
    if (absl::SimpleAtod(it->second, &given) && given >= 0 && given < 1e6) seconds = given;
  }
  return seconds;
}

void Fill(const absl::Status& status, size_t message_bytes, google::rpc::Status* message) {
  message->Clear();
  message->set_code(static_cast<int>(status.code()));
  message->set_message(CleanText(status.message(), message_bytes));
  if (status.ok()) return;

  const ErrorInfo info = GetErrorInfo(status);
  google::rpc::ErrorInfo error;
  error.set_reason(info.reason.empty() ? absl::StatusCodeToString(status.code()) : info.reason);
  error.set_domain(kDomain);
  size_t left = 4 * kDetailBytes;
  for (const auto& [key, value] : info.details) {
    const std::string text = CleanText(value, std::min(left, kDetailBytes));
    left -= std::min(left, text.size());
    (*error.mutable_metadata())[CleanText(key, 64)] = text;
  }
  message->add_details()->PackFrom(error);

  const bool retry = status.code() == absl::StatusCode::kUnavailable ||
                     status.code() == absl::StatusCode::kResourceExhausted;
  if (const double seconds = RetrySeconds(status, info); retry && seconds >= 0) {
    google::rpc::RetryInfo wait;
    DurationToWire(seconds, wait.mutable_retry_delay());
    message->add_details()->PackFrom(wait);
  }
  if (status.code() == absl::StatusCode::kFailedPrecondition) {
    google::rpc::PreconditionFailure failure;
    auto* violation = failure.add_violations();
    violation->set_type(error.reason());
    const auto field = info.details.find("field");
    violation->set_subject(field == info.details.end() ? std::string(kDomain)
                                                       : CleanText(field->second, kDetailBytes));
    violation->set_description(CleanText(message->message(), kDetailBytes));
    message->add_details()->PackFrom(failure);
  }
}

}  // namespace

void ToWire(const absl::Status& status, google::rpc::Status* message) {
  Fill(status, 16384, message);
}

absl::Status FromWire(const google::rpc::Status& message) {
  if (message.code() == 0) return absl::OkStatus();
  ErrorInfo info;
  for (const auto& detail : message.details()) {
    google::rpc::ErrorInfo error;
    google::rpc::RetryInfo wait;
    if (detail.UnpackTo(&error)) {
      info.reason = error.reason();
      for (const auto& [key, value] : error.metadata()) info.details[key] = value;
    } else if (detail.UnpackTo(&wait)) {
      info.details[kRetryAfter] = absl::StrCat(DurationFromWire(wait.retry_delay()));
    }
  }
  return MakeError(static_cast<absl::StatusCode>(message.code()), message.message(),
                   std::move(info));
}

grpc::Status ToGrpc(const absl::Status& status) {
  if (status.ok()) return grpc::Status::OK;
  google::rpc::Status message;
  // The text travels twice (grpc-message, and base64 with the details), and both copies must be the
  // same.
  for (size_t limit = 2400; limit >= 150; limit /= 2) {
    Fill(status, limit, &message);
    if (EncodedBytes(message.message()) + message.ByteSizeLong() * 4 / 3 <= kMetadataBytes) break;
  }
  return grpc::Status(static_cast<grpc::StatusCode>(status.code()), message.message(),
                      message.SerializeAsString());
}

absl::Status FromGrpc(const grpc::Status& status) {
  if (status.ok()) return absl::OkStatus();
  google::rpc::Status message;
  if (!message.ParseFromString(status.error_details()) ||
      message.code() != static_cast<int>(status.error_code())) {
    message.Clear();  // made by gRPC itself, or by a proxy
    message.set_code(static_cast<int>(status.error_code()));
  }
  if (message.message().empty()) message.set_message(status.error_message());
  absl::Status result = FromWire(message);
  if (GetErrorInfo(result).reason.empty()) {
    ErrorInfo info = GetErrorInfo(result);
    info.reason = absl::StatusCodeToString(result.code());
    result = MakeError(result.code(), result.message(), std::move(info));
  }
  return result;
}

}  // namespace kiln::wire
