// SPDX-License-Identifier: Apache-2.0
#include "server/answer_message.h"

#include <google/protobuf/arena.h>

#include "kiln/v1/kiln.pb.h"
#include "proto/wire.h"
#include "server/selection.h"

namespace kiln::server {

std::string AnswerMessage(Match match, const Record& record, const Workload& asked,
                          const std::vector<std::string>& stale_because) {
  google::protobuf::Arena arena;  // a record has hundreds of small parts
  auto& response = *google::protobuf::Arena::CreateMessage<v1::GetScheduleResponse>(&arena);
  response.set_match(wire::ToWire(match));
  wire::ToWire(record, response.mutable_record());
  response.mutable_record()->set_published(true);
  wire::NameArguments(asked, response.mutable_record()->mutable_plan());
  response.set_job(record.job);
  for (const std::string& why : stale_because) response.add_stale_because(why);
  return response.SerializeAsString();
}

absl::StatusOr<db::StoredAnswer> AnswerToKeep(const Record& record) {
  KILN_ASSIGN_OR_RETURN(const Workload asked, CheckWorkload(record.spec));
  if (asked.signature != record.key.signature || asked.canonical != record.canonical) {
    return InvalidField("RECORD_OF_ANOTHER_SPEC", "record.spec", asked.signature,
                        "not of the record's key", record.key.signature);
  }
  v1::WorkloadSpec spec;
  wire::ToWire(record.spec, &spec);
  return db::StoredAnswer{
      .question = QuestionText(spec, record.key.device, record.key.objective, record.key.salt),
      .record = record.id,
      .signature = record.key.signature,
      .toolchain = record.toolchain,
      .emitter = record.emitter,
      .method_version = record.measurement.method_version,
      .message = AnswerMessage(Match::kExact, record, asked, {})};
}

}  // namespace kiln::server
