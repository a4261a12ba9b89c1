// SPDX-License-Identifier: Apache-2.0
// The client's own values to and from messages; the contract's are converted by proto/wire.h.
#pragma once

#include "absl/status/statusor.h"
#include "client/kiln_client.h"

namespace google::longrunning {
class Operation;
}
namespace kiln::v1 {
class GetScheduleResponse;
class Selection;
class TuneScheduleRequest;
class Worker;
}  // namespace kiln::v1

namespace kiln::client {

void ToWire(const Selection& selection, const std::string& default_device, v1::Selection* message);
void ToWire(const TuneRequest& request, const std::string& default_device,
            v1::TuneScheduleRequest* message);
// INTERNAL: the server sent what no server of this version sends.
absl::StatusOr<Answer> FromWire(const v1::GetScheduleResponse& message);
absl::StatusOr<OperationState> FromWire(const google::longrunning::Operation& message);
absl::StatusOr<WorkerState> FromWire(const v1::Worker& message);

// The error for a message that this client cannot read: the server's fault, or that of a much newer
// version. INTERNAL (UNREADABLE_ANSWER).
absl::Status Unreadable(const absl::Status& status, absl::string_view what);
// The value, or that error.
template <typename T>
absl::StatusOr<T> Readable(absl::StatusOr<T> value, absl::string_view what) {
  if (!value.ok()) return Unreadable(value.status(), what);
  return value;
}

}  // namespace kiln::client
