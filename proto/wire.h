// SPDX-License-Identifier: Apache-2.0
// The border between the contract (plain C++) and the wire (generated messages), and between
// absl::Status and grpc::Status. Nothing else converts. Pure and thread-safe.
//
// ToWire overwrites the message with the value. FromWire checks what a message can get wrong
// (enums, counts, sizes, ranges of numbers) and returns INVALID_ARGUMENT that names the field,
// starting at `at`; what a workload means is checked by CheckWorkload. Messages are declared, not
// included: includers need kiln/v1/*.pb.h only for those that they touch.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "proto/contract/error.h"
#include "proto/contract/job.h"
#include "proto/contract/record.h"
#include "proto/contract/workload.h"

namespace grpc {
class Status;
}
namespace google::rpc {
class Status;
}
namespace kiln::v1 {
class Baseline;
class Budget;
class Device;
class Job;
class Measurement;
class Objective;
class Outcome;
class Plan;
class Progress;
class Record;
class Schedule;
class Verification;
class WorkloadSpec;
enum Match : int;
enum Stage : int;
}  // namespace kiln::v1

namespace kiln::wire {

// --- status ---

// Beside code and message: google.rpc.ErrorInfo (domain "kiln"; the reason is the code's name if
// none was attached), RetryInfo on UNAVAILABLE and RESOURCE_EXHAUSTED (detail
// "retry_after_seconds", else 1 and 5; "never": none), and PreconditionFailure on
// FAILED_PRECONDITION. Cut to fit into the 8 KiB of metadata that every client accepts.
grpc::Status ToGrpc(const absl::Status& status);
// With reason and details as MakeError would attach them, "retry_after_seconds" among them.
absl::Status FromGrpc(const grpc::Status& status);
// The same for Operation.error and for items of a batch.
void ToWire(const absl::Status& status, google::rpc::Status* message);
absl::Status FromWire(const google::rpc::Status& message);

// --- workload and device ---

void ToWire(const WorkloadSpec& spec, v1::WorkloadSpec* message);
absl::StatusOr<WorkloadSpec> FromWire(const v1::WorkloadSpec& message,
                                      absl::string_view at = "workload");
void ToWire(const DeviceFingerprint& device, v1::Device* message);  // sets `id`
absl::StatusOr<DeviceFingerprint> FromWire(const v1::Device& message,
                                           absl::string_view at = "device");  // ignores `id`
void ToWire(const Objective& objective, v1::Objective* message);
// What is unspecified is taken from `fallback`.
absl::StatusOr<Objective> FromWire(const v1::Objective& message, const Objective& fallback,
                                   absl::string_view at = "objective");
// A CPU's default is warm,burst, a GPU's cold,burst.
Objective DefaultObjective(DeviceKind kind);

// --- schedules, plans, what was measured ---

void ToWire(const Schedule& schedule, v1::Schedule* message);
absl::StatusOr<Schedule> FromWire(const v1::Schedule& message, absl::string_view at = "schedule");
void ToWire(const Plan& plan, v1::Plan* message);
absl::StatusOr<Plan> FromWire(const v1::Plan& message, absl::string_view at = "plan");
// Gives a plan's arguments and needs the names that the asker's program uses: tensors and dynamic
// dims.
void NameArguments(const Workload& workload, v1::Plan* message);
void ToWire(const Measurement& measurement, v1::Measurement* message);
absl::StatusOr<Measurement> FromWire(const v1::Measurement& message,
                                     absl::string_view at = "measurement");
void ToWire(const Verification& verification, v1::Verification* message);
absl::StatusOr<Verification> FromWire(const v1::Verification& message,
                                      absl::string_view at = "verification");
void ToWire(const Outcome& outcome, v1::Outcome* message);
absl::StatusOr<Outcome> FromWire(const v1::Outcome& message, absl::string_view at = "outcome");
v1::Stage ToWire(Stage stage);
absl::StatusOr<Stage> FromWire(v1::Stage stage, absl::string_view at = "stage");

// --- records and jobs ---

v1::Match ToWire(Match match);
// Unspecified: exact.
absl::StatusOr<Match> FromWire(v1::Match match, absl::string_view at = "min_quality");
void ToWire(const Record& record, v1::Record* message);  // leaves `published` false
absl::StatusOr<Record> FromWire(const v1::Record& message, absl::string_view at = "record");
void ToWire(const Budget& budget, v1::Budget* message);
// What is absent or 0 is taken from `defaults`, the seed aside.
absl::StatusOr<Budget> FromWire(const v1::Budget& message, const Budget& defaults,
                                absl::string_view at = "budget");
void ToWire(const Progress& progress, v1::Progress* message);
absl::StatusOr<Progress> FromWire(const v1::Progress& message, absl::string_view at = "progress");
void ToWire(const Job& job, v1::Job* message);
absl::StatusOr<Job> FromWire(const v1::Job& message, absl::string_view at = "job");

// "records/" + id on the wire, the bare id inside; "" stays "".
std::string RecordName(absl::string_view id);
std::string RecordId(absl::string_view name);

}  // namespace kiln::wire
