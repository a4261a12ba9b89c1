// SPDX-License-Identifier: Apache-2.0
// Records, jobs, workers, capabilities: AIP-158 pages that fit into the message that every client
// receives.
#include <utility>

#include "absl/strings/match.h"
#include "server/call_service.h"
#include "server/kiln_service.h"
#include "worker/compiler/families/family.h"

namespace kiln::server {
namespace {

constexpr size_t kMaxPageBytes = 3'500'000;

// Fills a page; if it does not fit into a message, a smaller one. `load` gives a page of the store,
// `fill` adds an item to the response and may fail.
template <typename Response, typename Load, typename Fill>
absl::Status FillPage(int32_t page_size, const std::string& token, Load load, Fill fill,
                      Response* response) {
  KILN_ASSIGN_OR_RETURN(int size, PageSize(page_size));
  for (;;) {
    KILN_ASSIGN_OR_RETURN(auto page, load(db::Page{size, token}));
    response->Clear();
    for (const auto& item : page.items) KILN_RETURN_IF_ERROR(fill(item));
    response->set_next_page_token(page.next_token);
    if (size == 1 || response->ByteSizeLong() <= kMaxPageBytes) return absl::OkStatus();
    size = std::max(1, size / 4);
  }
}

std::string StateOf(const Worker& worker, const std::string& job) {
  if (worker.lost) return "lost";
  if (worker.draining) return "draining";
  return job.empty() ? "idle" : "busy";
}

}  // namespace

grpc::ServerUnaryReactor* KilnService::ListRecords(Context* context,
                                                   const v1::ListRecordsRequest* request,
                                                   v1::ListRecordsResponse* response) {
  return Offload(core_, context, [=, this]() -> absl::Status {
    db::RecordFilter filter{request->signature(), request->device()};
    if (!filter.device.empty()) {
      // Any name of a device, not only its id; a name that means nothing now may still be an id in
      // old records.
      if (const auto known = core_->lookup.Resolve(filter.device); known.ok()) {
        filter.device = (*known)->id;
      }
    }
    return FillPage(
        request->page_size(), request->page_token(),
        [&](const db::Page& page) { return core_->store->ListRecords(filter, page); },
        [&](const Record& record) {
          return messages_->Fill(record, /*summary=*/true, response->add_records());
        },
        response);
  });
}

grpc::ServerUnaryReactor* KilnService::GetRecord(Context* context,
                                                 const v1::GetRecordRequest* request,
                                                 v1::Record* response) {
  return Offload(core_, context, [=, this]() -> absl::Status {
    KILN_ASSIGN_OR_RETURN(const Record record,
                          core_->store->GetRecord(wire::RecordId(request->name())));
    return messages_->Fill(record, /*summary=*/false, response);
  });
}

grpc::ServerUnaryReactor* KilnService::ListJobs(Context* context,
                                                const v1::ListJobsRequest* request,
                                                v1::ListJobsResponse* response) {
  return Offload(core_, context, [=, this]() -> absl::Status {
    return FillPage(
        request->page_size(), request->page_token(),
        [&](const db::Page& page) { return core_->store->ListJobs(request->live_only(), page); },
        [&](const Job& job) -> absl::Status {
          // What lives is known better in memory.
          if (IsEnd(job.state)) {
            messages_->Fill(job, response->add_jobs());
            return absl::OkStatus();
          }
          KILN_ASSIGN_OR_RETURN(const Job now, core_->jobs.GetJob(job.name));
          messages_->Fill(now, response->add_jobs());
          return absl::OkStatus();
        },
        response);
  });
}

grpc::ServerUnaryReactor* KilnService::GetJob(Context* context, const v1::GetJobRequest* request,
                                              v1::Job* response) {
  return Offload(core_, context, [=, this]() -> absl::Status {
    std::string name = request->name();
    if (const auto stored = OperationMessages::StoredRecord(name)) {
      KILN_ASSIGN_OR_RETURN(const Record record, core_->store->GetRecord(*stored));
      name = record.job;
    } else if (absl::StartsWith(name, "operations/")) {
      KILN_ASSIGN_OR_RETURN(const Operation operation, core_->store->GetOperation(name));
      name = operation.job;
    }
    KILN_ASSIGN_OR_RETURN(const Job job, core_->jobs.GetJob(name));
    messages_->Fill(job, response);
    return absl::OkStatus();
  });
}

grpc::ServerUnaryReactor* KilnService::ListWorkers(Context* context,
                                                   const v1::ListWorkersRequest* request,
                                                   v1::ListWorkersResponse* response) {
  return Offload(core_, context, [=, this]() -> absl::Status {
    KILN_ASSIGN_OR_RETURN(const int size, PageSize(request->page_size()));
    std::map<std::string, std::string> running;
    for (const Job& job : core_->jobs.LiveJobs()) {
      if (job.state == JobState::kRunning) running[job.worker] = job.name;
    }
    // By name; the token is the last one that was shown.
    for (const Worker& worker : core_->roster.List()) {
      if (worker.name <= request->page_token()) continue;
      if (response->workers_size() == size) {
        response->set_next_page_token(response->workers(size - 1).name());
        break;
      }
      auto* shown = response->add_workers();
      const auto job = running.find(worker.name);
      shown->set_name(worker.name);
      wire::ToWire(worker.device, shown->mutable_device());
      shown->set_host(worker.host);
      shown->set_pid(worker.pid);
      shown->set_version(worker.version);
      shown->set_toolchain(worker.toolchain);
      shown->set_job(job == running.end() ? "" : job->second);
      shown->set_state(StateOf(worker, shown->job()));
      shown->set_seconds_since_seen(absl::ToDoubleSeconds(core_->clock->Now() - worker.seen));
      shown->set_timer(worker.timer);
      shown->set_jobs_done(worker.jobs_done);
    }
    return absl::OkStatus();
  });
}

grpc::ServerUnaryReactor* KilnService::GetCapabilities(Context* context,
                                                       const v1::GetCapabilitiesRequest*,
                                                       v1::Capabilities* response) {
  response->set_version(KILN_VERSION);
  response->set_api_low("v1");
  response->set_api_high("v1");
  response->add_device_kinds("cpu");
  for (const compiler::Family* family : compiler::Families()) {
    response->add_families(absl::StrCat(family->name(), "/", family->version()));
  }
  auto& missing = *response->mutable_unimplemented();
  missing["cuda"] = "tuning for a CUDA device";
  missing["sim"] = "tuning for a simulated device";
  missing["dynamic_dims"] = "TuneSchedule of a workload with a range for a dim";
  missing["near"] = missing["predicted"] = missing["default"] = "GetSchedule with this min_quality";
  const Options& options = core_->options;
  auto& limits = *response->mutable_limits();
  limits["max_batch"] = 1000;
  limits["max_page_size"] = 1000;
  limits["max_program_bytes"] = 64 << 10;
  limits["max_queue"] = options.jobs.max_jobs;
  limits["max_queue_per_client"] = options.jobs.max_jobs_per_client;
  limits["max_waiters_per_job"] = options.jobs.max_operations_per_job;
  limits["max_held_calls"] = options.max_held_calls;
  limits["max_artifact_bytes"] = options.max_artifact_bytes;
  response->set_priority_low(kLowestPriority);
  response->set_priority_high(kHighestPriority);
  response->set_salt(core_->lookup.salt());
  auto* reactor = context->DefaultReactor();
  reactor->Finish(grpc::Status::OK);
  return reactor;
}

}  // namespace kiln::server
