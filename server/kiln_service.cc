// SPDX-License-Identifier: Apache-2.0
// TuneSchedule: the server's story from request to answer.
#include "server/kiln_service.h"

#include <utility>

#include "server/call_service.h"
#include "server/selection.h"

namespace kiln::server {

KilnService::KilnService(Core* core, OperationMessages* messages)
    : core_(core),
      messages_(messages),
      cache_limit_(core->options.cache_bytes / 4 * 3),
      cache_(cache_limit_) {}

//   request -> canonical form -> signature -> lookup --hit--> answer
//                                               |miss
//                                               v
//                                   job: one per key, however many ask; an operation for each of
//                                   them
//
// From there the dispatcher leases the job to a worker, the worker searches, the publisher takes
// the winner, and everyone who waits for an operation of the job is told.
grpc::ServerUnaryReactor* KilnService::TuneSchedule(Context* context,
                                                    const v1::TuneScheduleRequest* request,
                                                    google::longrunning::Operation* response) {
  const std::string client = ClientOf(*context);
  return Offload(core_, context, [this, request, response, client]() -> absl::Status {
    const auto refused = [this](absl::Status status) {
      Add(core_->counters.tunes_refused);
      return status;
    };
    // What is asked: checked, in canonical form, with the signature that it is known by, for a
    // device that is known.
    if (absl::Status ok = CheckRequest(request->priority(), request->request_id()); !ok.ok())
      return refused(ok);
    const absl::StatusOr<Budget> budget =
        wire::FromWire(request->budget(), core_->options.default_budget);
    if (!budget.ok()) return refused(budget.status());
    const absl::StatusOr<Question> question = Understand(request->selection(), &core_->lookup);
    if (!question.ok()) return refused(question.status());

    // Asked before, by this client under this id: the operation that it got then.
    const absl::StatusOr<JobTable::OperationView> before =
        RequestedBefore(client, request->request_id());
    if (before.ok()) return messages_->Fill(*before, response);
    if (!absl::IsNotFound(before.status())) return before.status();

    // Stored already: the answer, at once. A stale one is searched for again.
    if (!request->force()) {
      KILN_ASSIGN_OR_RETURN(const Answer stored, core_->lookup.Find(*question));
      if (stored.match == Match::kExact) {
        Add(core_->counters.tunes_stored);
        const std::string name =
            messages_->StoredName(*stored.record, client, request->request_id());
        return messages_->FillStored(name, *stored.record, question->workload.get(), response);
      }
    }

    if (core_->options.read_only) {
      return refused(MakeError(
          absl::StatusCode::kFailedPrecondition,
          absl::StrCat("nothing is stored for it, and nothing can be: ", core_->options.db,
                       " is served with --read-only; ask a server that writes"),
          {"READ_ONLY_STORE", {{"path", core_->options.db}}}));
    }

    // A search: of something that can be searched for, by the one job of the key.
    if (absl::Status ok = Admit(*question->workload, question->device, core_->match); !ok.ok())
      return refused(ok);
    Operation operation{"", "", client, request->request_id()};
    absl::StatusOr<JobTable::Placed> placed = core_->jobs.FindOrCreate(
        Proposal(*question, *budget, *request, client), std::move(operation));
    if (!placed.ok()) return refused(placed.status());
    if (!placed->joined) core_->pool.Run([this] { core_->dispatcher.JobQueued(); });
    return messages_->Fill({placed->operation, placed->job}, response);
  });
}

absl::StatusOr<JobTable::OperationView> KilnService::RequestedBefore(
    const std::string& client, const std::string& request_id) {
  if (request_id.empty()) return absl::NotFoundError("no request_id");
  KILN_ASSIGN_OR_RETURN(const std::optional<Operation> operation,
                        core_->store->FindOperation(client, request_id));
  if (!operation) return absl::NotFoundError("a new request_id");
  Add(core_->counters.tunes_repeated);
  return core_->jobs.GetOperation(operation->name);
}

Job KilnService::Proposal(const Question& question, const Budget& budget,
                          const v1::TuneScheduleRequest& request, const std::string& client) const {
  Job job;
  job.key = question.key;
  job.spec = question.workload->spec;
  job.canonical = question.workload->canonical;
  job.device = question.device;
  job.budget = budget;
  job.priority = request.priority();
  job.client = client;
  job.force = request.force();
  return job;
}

}  // namespace kiln::server
