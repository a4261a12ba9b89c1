// SPDX-License-Identifier: Apache-2.0
#include "client/cli/exit_code.h"

#include "absl/strings/match.h"
#include "proto/contract/error.h"

namespace kiln::cli {
namespace {

bool LacksWorker(const absl::Status& status) {
  return absl::StartsWith(GetErrorInfo(status).reason, "NO_WORKER");
}

}  // namespace

ExitCode ExitCodeOf(const absl::Status& status) {
  const std::string reason = GetErrorInfo(status).reason;
  if (reason == "RESULT_DIFFERS") return kDifferent;
  if (reason == "JOB_FAILED") return kJobFailed;
  if (LacksWorker(status)) return kUnavailable;
  switch (status.code()) {
    case absl::StatusCode::kOk:
      return kDone;
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kOutOfRange:
      return kUsage;
    case absl::StatusCode::kNotFound:
      return kNothingStored;
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kDeadlineExceeded:
    case absl::StatusCode::kAborted:
      return kUnavailable;
    case absl::StatusCode::kFailedPrecondition:
    case absl::StatusCode::kResourceExhausted:
    case absl::StatusCode::kPermissionDenied:
    case absl::StatusCode::kUnauthenticated:
    case absl::StatusCode::kUnimplemented:
    case absl::StatusCode::kAlreadyExists:
      return kRefused;
    case absl::StatusCode::kCancelled:
      return kInterrupted;
    default:
      return kInternal;
  }
}

ExitCode ExitCodeOfJob(const absl::Status& error) {
  return LacksWorker(error) ? kUnavailable : kJobFailed;
}

}  // namespace kiln::cli
