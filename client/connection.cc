// SPDX-License-Identifier: Apache-2.0
#include "client/connection.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <condition_variable>
#include <mutex>
#include <random>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "proto/contract/error.h"
#include "proto/wire.h"

namespace kiln::client {
namespace {

constexpr char kIdentityKey[] = "kiln-client";
constexpr int kMaxMessageBytes = 64 << 20;  // lists of records; artifacts come in chunks

std::shared_ptr<grpc::Channel> MakeChannel(const std::string& server) {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(kMaxMessageBytes);
  // gRPC's own waiting goes up to two minutes, longer than a client seeks a server that restarts.
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 50);
  // The least time that an attempt gets, too: a busy server may take seconds to shake hands.
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 15'000);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 1000);
  return grpc::CreateCustomChannel(server, grpc::InsecureChannelCredentials(), arguments);
}

absl::Duration AskedDelay(const absl::Status& status) {
  const ErrorInfo info = GetErrorInfo(status);
  const auto it = info.details.find("retry_after_seconds");
  double seconds = 0;
  if (it == info.details.end() || !absl::SimpleAtod(it->second, &seconds))
    return absl::ZeroDuration();
  return absl::Seconds(std::clamp(seconds, 0.0, 60.0));
}

}  // namespace

Client::Wire::Wire(const ClientOptions& client_options)
    : options(client_options),
      channel(MakeChannel(client_options.server)),
      kiln(v1::KilnService::NewStub(channel)),
      artifacts(v1::ArtifactService::NewStub(channel)),
      operations(google::longrunning::Operations::NewStub(channel)),
      answers(client_options.answers, client_options.answer_lifetime) {
  if (options.identity.empty()) options.identity = absl::StrCat("kiln-client/", getpid());
}

void Client::Wire::Prepare(grpc::ClientContext* context, absl::Time deadline) const {
  context->set_deadline(absl::ToChronoTime(deadline));
  context->AddMetadata(kIdentityKey, options.identity);
}

absl::Status Client::Wire::ToStatus(const grpc::Status& status) const {
  absl::Status converted = wire::FromGrpc(status);
  const std::string reason = GetErrorInfo(converted).reason;
  const bool local = reason.empty() || reason == absl::StatusCodeToString(converted.code());
  if (!local) return converted;  // the server's own words
  if (converted.code() == absl::StatusCode::kUnavailable) {
    return MakeError(
        converted.code(),
        absl::StrCat("server ", options.server, " cannot be reached: ", converted.message()),
        {"SERVER_UNAVAILABLE", {{"server", options.server}}});
  }
  if (converted.code() == absl::StatusCode::kDeadlineExceeded) {
    return MakeError(converted.code(),
                     absl::StrCat("server ", options.server, " did not answer in time"),
                     {"TIMEOUT", {{"server", options.server}}});
  }
  return converted;
}

absl::Status Client::Wire::Call(const std::function<grpc::Status(grpc::ClientContext*)>& call,
                                absl::Duration retry_for, const std::stop_token& stop) const {
  const absl::Time give_up = absl::Now() + retry_for;
  Backoff backoff;
  while (true) {
    grpc::ClientContext context;
    Prepare(&context, absl::Now() + options.call_timeout);
    const std::stop_callback cancel(stop, [&context] { context.TryCancel(); });
    absl::Status status = ToStatus(call(&context));
    const absl::Duration left = give_up - absl::Now();
    if (!absl::IsUnavailable(status) || left <= absl::ZeroDuration() || stop.stop_requested())
      return status;
    backoff.Wait(stop, left, AskedDelay(status));
  }
}

Backoff::Backoff() : random_(std::random_device{}()) {}

void Backoff::Wait(const std::stop_token& stop, absl::Duration at_most, absl::Duration at_least) {
  constexpr double kFirstMs = 50, kGrowth = 1.6, kLongestMs = 2000;
  const double scale = std::min(kFirstMs * std::pow(kGrowth, attempt_++), kLongestMs);
  random_ = random_ * 6364136223846793005u + 1442695040888963407u;
  const double jitter = 0.5 + static_cast<double>(random_ >> 11) / (uint64_t{1} << 53);
  const absl::Duration wait =
      std::min(std::max(absl::Milliseconds(scale * jitter), at_least), at_most);
  std::mutex mutex;
  std::condition_variable_any stopped;
  std::unique_lock<std::mutex> lock(mutex);
  stopped.wait_for(lock, stop, absl::ToChronoNanoseconds(wait), [] { return false; });
}

absl::Status WithDetails(const absl::Status& status,
                         const std::map<std::string, std::string>& details) {
  if (status.ok()) return status;
  ErrorInfo info = GetErrorInfo(status);
  for (const auto& [name, value] : details) {
    if (!value.empty()) info.details.emplace(name, value);
  }
  return MakeError(status.code(), status.message(), info);
}

}  // namespace kiln::client
