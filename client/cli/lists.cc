// SPDX-License-Identifier: Apache-2.0
// What the server has: jobs, records, workers, artifacts.
#include <unistd.h>

#include <cstdio>
#include <fstream>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "client/cli/commands.h"
#include "client/cli/json.h"
#include "client/cli/words.h"
#include "proto/contract/error.h"

namespace kiln::cli {
namespace {

template <typename Values, typename ToJson>
Json ListJson(const char* name, const Values& values, ToJson to_json) {
  Json list = Json::array();
  for (const auto& value : values) list.push_back(to_json(value));
  return {{name, list}};
}

}  // namespace

absl::Status RunJobs(Session& session) {
  KILN_ASSIGN_OR_RETURN(client::Client* const client, session.Connect());
  KILN_ASSIGN_OR_RETURN(const std::vector<Job> jobs, client->ListJobs());
  session.output().Print(ListJson("jobs", jobs, JobJson), JobLines(jobs));
  return absl::OkStatus();
}

absl::Status RunRecords(Session& session) {
  KILN_ASSIGN_OR_RETURN(client::Client* const client, session.Connect());
  KILN_ASSIGN_OR_RETURN(const std::vector<Record> records, client->ListRecords());
  session.output().Print(ListJson("records", records, RecordJson), RecordLines(records));
  return absl::OkStatus();
}

absl::Status RunWorkers(Session& session) {
  KILN_ASSIGN_OR_RETURN(client::Client* const client, session.Connect(/*needs_worker=*/true));
  KILN_ASSIGN_OR_RETURN(const std::vector<client::WorkerState> workers, client->ListWorkers());
  session.output().Print(ListJson("workers", workers, WorkerJson), WorkerLines(workers));
  return absl::OkStatus();
}

absl::Status RunJobGet(Session& session) {
  KILN_ASSIGN_OR_RETURN(client::Client* const client, session.Connect());
  KILN_ASSIGN_OR_RETURN(const Job job, client->GetJob(session.options().name));
  session.output().Print(JobJson(job), JobWords(job));
  return absl::OkStatus();
}

absl::Status RunJobCancel(Session& session) {
  const std::string& name = session.options().name;
  if (!absl::StartsWith(name, "operations/")) {
    return InvalidField("INVALID_NAME", "NAME", name, "no operation",
                        "operations/...: one withdraws one's own interest, not the job");
  }
  KILN_ASSIGN_OR_RETURN(client::Client* const client, session.Connect());
  KILN_RETURN_IF_ERROR(client->Cancel(name));
  KILN_ASSIGN_OR_RETURN(const Job job, client->GetJob(name));
  Json json = JobJson(job);
  json["operation"] = name;
  session.output().Print(json, absl::StrCat(name, ": withdrawn\n", JobWords(job)));
  return absl::OkStatus();
}

absl::Status RunRecordGet(Session& session) {
  KILN_ASSIGN_OR_RETURN(client::Client* const client, session.Connect());
  client::Answer answer;
  KILN_ASSIGN_OR_RETURN(answer.record, client->GetRecord(session.options().name));
  answer.match = Match::kExact;
  KILN_ASSIGN_OR_RETURN(const Workload workload, CheckWorkload(answer.record.spec));
  Json json = AnswerJson(answer, workload);
  json.erase("match");
  json["program"] = answer.record.spec.program;
  json["canonical"] = answer.record.canonical;
  json["artifacts"] = answer.record.artifacts;
  session.output().Print(json, AnswerWords(answer, workload));
  return absl::OkStatus();
}

absl::Status RunArtifactGet(Session& session) {
  const Options& options = session.options();
  KILN_ASSIGN_OR_RETURN(client::Client* const client, session.Connect());
  KILN_ASSIGN_OR_RETURN(const std::string bytes, client->FetchArtifact(options.name));
  std::ofstream file(options.output_file, std::ios::binary | std::ios::trunc);
  file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  file.close();
  if (!file.good()) {
    return InvalidField("CANNOT_WRITE", "-o", options.output_file, "no file that can be written",
                        "a writable path");
  }
  session.output().Print(
      {{"digest", options.name}, {"bytes", bytes.size()}, {"file", options.output_file}},
      absl::StrCat(options.output_file, ": ", bytes.size(), " bytes"));
  return absl::OkStatus();
}

}  // namespace kiln::cli
