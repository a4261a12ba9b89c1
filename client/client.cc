// SPDX-License-Identifier: Apache-2.0
// Lookups and lists.
#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "client/connection.h"
#include "client/convert.h"
#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/io/zero_copy_stream_impl_lite.h"
#include "proto/contract/error.h"
#include "proto/wire.h"

namespace kiln::client {
namespace {

constexpr int kBatch = 1000;  // what a server takes at once
constexpr int kPageSize = 500;

bool IsAddress(const std::string& server) {
  if (absl::StartsWith(server, "unix:")) return server.size() > 5;
  const size_t colon = server.rfind(':');
  return colon != std::string::npos && colon > 0 && colon + 1 < server.size() &&
         std::all_of(server.begin() + colon + 1, server.end(),
                     [](char c) { return c >= '0' && c <= '9'; });
}

// The request's bytes, the same for equal requests: maps have no order of their own on the wire.
std::string KeyOf(const google::protobuf::Message& request) {
  std::string bytes;
  {
    google::protobuf::io::StringOutputStream stream(&bytes);
    google::protobuf::io::CodedOutputStream coded(&stream);
    coded.SetSerializationDeterministic(true);
    request.SerializeToCodedStream(&coded);
  }  // what they hold back is written when they go
  return bytes;
}

// Asks for one page after the other; `page` makes one call and returns the next page's token.
absl::Status ForEachPage(
    const std::function<absl::StatusOr<std::string>(const std::string& token)>& page) {
  std::string token;
  do {
    KILN_ASSIGN_OR_RETURN(token, page(token));
  } while (!token.empty());
  return absl::OkStatus();
}

}  // namespace

Client::Client(std::unique_ptr<Wire> wire) : wire_(std::move(wire)) {}
Client::~Client() = default;

absl::StatusOr<std::unique_ptr<Client>> Client::Make(const ClientOptions& options) {
  if (!IsAddress(options.server)) {
    return InvalidField("INVALID_ADDRESS", "server", options.server, "no address",
                        "HOST:PORT or unix:PATH");
  }
  return std::unique_ptr<Client>(new Client(std::make_unique<Wire>(options)));
}

absl::StatusOr<Answer> Client::GetSchedule(const Selection& selection, Match min_quality) {
  v1::GetScheduleRequest request;
  ToWire(selection, wire_->options.device, request.mutable_selection());
  request.set_min_quality(wire::ToWire(min_quality));
  const std::string bytes = KeyOf(request);
  if (std::optional<Answer> known = wire_->answers.Find(bytes, absl::Now()))
    return *std::move(known);
  v1::GetScheduleResponse response;
  KILN_RETURN_IF_ERROR(wire_->Call([&](grpc::ClientContext* context) {
    return wire_->kiln->GetSchedule(context, request, &response);
  }));
  KILN_ASSIGN_OR_RETURN(Answer answer, FromWire(response));
  wire_->answers.Insert(bytes, answer, absl::Now());
  return answer;
}

absl::StatusOr<std::vector<absl::StatusOr<Answer>>> Client::BatchGetSchedules(
    const std::vector<Selection>& selections, Match min_quality) {
  std::vector<absl::StatusOr<Answer>> answers;
  answers.reserve(selections.size());
  for (size_t begin = 0; begin < selections.size(); begin += kBatch) {
    const size_t end = std::min(selections.size(), begin + kBatch);
    v1::BatchGetSchedulesRequest request;
    for (size_t i = begin; i < end; ++i) {
      v1::GetScheduleRequest* one = request.add_requests();
      ToWire(selections[i], wire_->options.device, one->mutable_selection());
      one->set_min_quality(wire::ToWire(min_quality));
    }
    v1::BatchGetSchedulesResponse response;
    KILN_RETURN_IF_ERROR(wire_->Call([&](grpc::ClientContext* context) {
      return wire_->kiln->BatchGetSchedules(context, request, &response);
    }));
    if (response.items_size() != request.requests_size()) {
      return MakeError(absl::StatusCode::kInternal,
                       absl::StrCat("the server answered ", response.items_size(), " of ",
                                    request.requests_size(), " lookups"),
                       {"UNREADABLE_ANSWER", {}});
    }
    for (const auto& item : response.items()) {
      if (item.has_status() && item.status().code() != 0) {
        answers.push_back(wire::FromWire(item.status()));
      } else {
        answers.push_back(FromWire(item.response()));
      }
    }
  }
  return answers;
}

absl::StatusOr<std::vector<Record>> Client::ListRecords(const std::string& signature,
                                                        const std::string& device) {
  std::vector<Record> records;
  KILN_RETURN_IF_ERROR(ForEachPage([&](const std::string& token) -> absl::StatusOr<std::string> {
    v1::ListRecordsRequest request;
    request.set_page_size(kPageSize);
    request.set_page_token(token);
    request.set_signature(signature);
    request.set_device(device);
    v1::ListRecordsResponse response;
    KILN_RETURN_IF_ERROR(wire_->Call([&](grpc::ClientContext* context) {
      return wire_->kiln->ListRecords(context, request, &response);
    }));
    for (const auto& message : response.records()) {
      KILN_ASSIGN_OR_RETURN(records.emplace_back(), Readable(wire::FromWire(message), "record"));
    }
    return response.next_page_token();
  }));
  return records;
}

absl::StatusOr<Record> Client::GetRecord(const std::string& id) {
  v1::GetRecordRequest request;
  request.set_name(absl::StartsWith(id, "records/") ? id : wire::RecordName(id));
  v1::Record response;
  KILN_RETURN_IF_ERROR(wire_->Call([&](grpc::ClientContext* context) {
    return wire_->kiln->GetRecord(context, request, &response);
  }));
  return Readable(wire::FromWire(response), "record");
}

absl::StatusOr<std::vector<Job>> Client::ListJobs() {
  std::vector<Job> jobs;
  KILN_RETURN_IF_ERROR(ForEachPage([&](const std::string& token) -> absl::StatusOr<std::string> {
    v1::ListJobsRequest request;
    request.set_page_size(kPageSize);
    request.set_page_token(token);
    v1::ListJobsResponse response;
    KILN_RETURN_IF_ERROR(wire_->Call([&](grpc::ClientContext* context) {
      return wire_->kiln->ListJobs(context, request, &response);
    }));
    for (const auto& message : response.jobs()) {
      KILN_ASSIGN_OR_RETURN(jobs.emplace_back(), Readable(wire::FromWire(message), "job"));
    }
    return response.next_page_token();
  }));
  return jobs;
}

absl::StatusOr<Job> Client::GetJob(const std::string& job_or_operation) {
  v1::GetJobRequest request;
  request.set_name(job_or_operation);
  v1::Job response;
  KILN_RETURN_IF_ERROR(wire_->Call([&](grpc::ClientContext* context) {
    return wire_->kiln->GetJob(context, request, &response);
  }));
  return Readable(wire::FromWire(response), "job");
}

absl::StatusOr<std::vector<WorkerState>> Client::ListWorkers() {
  std::vector<WorkerState> workers;
  KILN_RETURN_IF_ERROR(ForEachPage([&](const std::string& token) -> absl::StatusOr<std::string> {
    v1::ListWorkersRequest request;
    request.set_page_size(kPageSize);
    request.set_page_token(token);
    v1::ListWorkersResponse response;
    KILN_RETURN_IF_ERROR(wire_->Call([&](grpc::ClientContext* context) {
      return wire_->kiln->ListWorkers(context, request, &response);
    }));
    for (const auto& message : response.workers()) {
      KILN_ASSIGN_OR_RETURN(workers.emplace_back(), FromWire(message));
    }
    return response.next_page_token();
  }));
  return workers;
}

}  // namespace kiln::client
