// SPDX-License-Identifier: Apache-2.0
#include "server/operation_messages.h"

#include <atomic>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "google/longrunning/operations.pb.h"
#include "kiln/v1/kiln.pb.h"
#include "proto/wire.h"

namespace kiln::server {
namespace {

constexpr char kStored[] = "operations/stored-";
constexpr char kAnswerType[] = "type.googleapis.com/kiln.v1.TuneScheduleResponse";

}  // namespace

void OperationMessages::Fill(const Job& job, v1::Job* message) const {
  wire::ToWire(job, message);
  if (job.state == JobState::kQueued) {
    const bool served = !core_->roster.Present(job.key.device)->empty();
    message->mutable_progress()->set_phase(served ? "queued" : "waiting");
  }
}

absl::Status OperationMessages::Fill(const Record& record, bool summary,
                                     v1::Record* message) const {
  wire::ToWire(record, message);
  if (summary) message->mutable_measurement()->clear_samples_ns();
  KILN_ASSIGN_OR_RETURN(const bool published, core_->store->IsPublished(record.id));
  message->set_published(published);
  return absl::OkStatus();
}

absl::StatusOr<Record> OperationMessages::AnswerOf(const Job& job) const {
  KILN_ASSIGN_OR_RETURN(Record record, core_->store->GetRecord(job.record));
  KILN_ASSIGN_OR_RETURN(const bool published, core_->store->IsPublished(record.id));
  if (published) return record;
  // It did not beat the incumbent, or was beaten since: the key's answer is the better one.
  KILN_ASSIGN_OR_RETURN(std::optional<Record> better,
                        core_->store->FindPublished(job.key, job.canonical));
  return better ? *std::move(better) : std::move(record);
}

absl::Status OperationMessages::Fill(const JobTable::OperationView& view,
                                     google::longrunning::Operation* message) {
  message->Clear();
  message->set_name(view.operation.name);
  v1::TuneMetadata metadata;
  Fill(view.job, metadata.mutable_job());
  // The first operation is made with its job.
  metadata.set_joined(view.operation.created > view.job.created);
  message->mutable_metadata()->PackFrom(metadata);
  message->set_done(view.done());
  if (!view.done()) return absl::OkStatus();
  if (const absl::Status result = view.result(); !result.ok()) {
    wire::ToWire(result, message->mutable_error());
    return absl::OkStatus();
  }
  std::optional<std::shared_ptr<const std::string>> answer = answers_.Find(view.job.name);
  if (!answer) {
    absl::StatusOr<Record> record = AnswerOf(view.job);
    if (!record.ok()) {
      // A damaged row, say: this operation's result, not an error of the call.
      wire::ToWire(Annotate(record.status(), view.job.record), message->mutable_error());
      return absl::OkStatus();
    }
    v1::TuneScheduleResponse response;
    response.set_match(v1::MATCH_EXACT);
    response.set_job(view.job.name);
    KILN_RETURN_IF_ERROR(Fill(*record, /*summary=*/false, response.mutable_record()));
    // The names of the first asker; others put theirs in by position (wire::NameArguments).
    if (const auto workload = CheckWorkload(view.job.spec); workload.ok()) {
      wire::NameArguments(*workload, response.mutable_record()->mutable_plan());
    }
    answer = std::make_shared<const std::string>(response.SerializeAsString());
    answers_.Insert(view.job.name, *answer, (*answer)->size());
  }
  message->mutable_response()->set_type_url(kAnswerType);
  message->mutable_response()->set_value(**answer);
  return absl::OkStatus();
}

absl::Status OperationMessages::FillStored(const std::string& name, const Record& record,
                                           const Workload* workload,
                                           google::longrunning::Operation* message) const {
  message->Clear();
  message->set_name(name);
  v1::TuneMetadata metadata;
  // The job that found it, in short: it may be of another database.
  metadata.mutable_job()->set_name(record.job);
  metadata.mutable_job()->set_signature(record.key.signature);
  metadata.mutable_job()->set_device_id(record.key.device);
  wire::ToWire(record.key.objective, metadata.mutable_job()->mutable_objective());
  wire::ToWire(record.spec, metadata.mutable_job()->mutable_spec());
  wire::ToWire(record.device, metadata.mutable_job()->mutable_device());
  metadata.mutable_job()->set_state(v1::JOB_STATE_SUCCEEDED);
  metadata.mutable_job()->set_record(wire::RecordName(record.id));
  metadata.set_joined(true);
  message->mutable_metadata()->PackFrom(metadata);
  v1::TuneScheduleResponse response;
  response.set_match(v1::MATCH_EXACT);
  response.set_job(record.job);
  KILN_RETURN_IF_ERROR(Fill(record, /*summary=*/false, response.mutable_record()));
  if (workload != nullptr)
    wire::NameArguments(*workload, response.mutable_record()->mutable_plan());
  message->set_done(true);
  message->mutable_response()->PackFrom(response);
  return absl::OkStatus();
}

std::string OperationMessages::StoredName(const Record& record, const std::string& client,
                                          const std::string& request_id) const {
  static std::atomic<uint64_t> serial{0};
  const std::string own = request_id.empty()
                              ? absl::StrCat(absl::FormatTime(core_->clock->Now()), " ", ++serial)
                              : absl::StrCat(client, "\n", request_id);
  return absl::StrCat(kStored, record.id, "-", Sha256Hex(own).substr(0, 12));
}

std::optional<std::string> OperationMessages::StoredRecord(absl::string_view name) {
  if (!absl::ConsumePrefix(&name, kStored)) return std::nullopt;
  return std::string(name.substr(0, name.rfind('-')));
}

}  // namespace kiln::server
