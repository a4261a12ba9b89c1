// SPDX-License-Identifier: Apache-2.0
#include "db/job_rows.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "db/checksum.h"
#include "db/columns.h"
#include "db/names.h"
#include "proto/contract/error.h"

namespace kiln::db {
namespace {

// The columns of a job in the order that ReadJob takes them.
#define KILN_SELECT_JOBS                                                                  \
  "SELECT j.id, w.signature, w.canonical, j.device, j.objective, j.salt, j.fingerprint, " \
  "j.client, j.request, j.state, j.lease_epoch, j.condition, j.created, j.checksum, "     \
  "(SELECT count(*) FROM operation o WHERE o.job = j.id AND o.cancelled = 0) "            \
  "FROM job j JOIN workload w ON w.id = j.workload WHERE "
#define KILN_LIVE "j.state IN ('queued', 'running')"
#define KILN_JOB_OF_KEY                                                              \
  "j.workload = (SELECT id FROM workload WHERE signature = ?) AND j.device = ? AND " \
  "j.objective = ? AND j.salt = ? AND " KILN_LIVE

enum Column {
  kId,
  kSignature,
  kCanonical,
  kDevice,
  kObjective,
  kSalt,
  kFingerprint,
  kClient,
  kRequest,
  kState,
  kEpoch,
  kCondition,
  kCreated,
  kChecksum,
  kOperations
};

// A job's columns as its checksum sees them.
struct Content {
  int64_t id;
  absl::string_view signature, canonical, device, objective;
  int64_t salt;
  absl::string_view client, request, state;
  int64_t lease_epoch;
  absl::string_view condition;
  int64_t created;

  int64_t Sum() const {
    return RowDigest()
        .Add(id)
        .Add(signature)
        .Add(canonical)
        .Add(device)
        .Add(objective)
        .Add(salt)
        .Add(client)
        .Add(request)
        .Add(state)
        .Add(lease_epoch)
        .Add(condition)
        .Add(created)
        .Sum();
  }
};

absl::Status ReadJob(Connection& connection, const Statement& row, DeviceTable& devices, Job* job) {
  const Content content{row.Integer(kId),    row.Text(kSignature), row.Text(kCanonical),
                        row.Text(kDevice),   row.Text(kObjective), row.Integer(kSalt),
                        row.Text(kClient),   row.Text(kRequest),   row.Text(kState),
                        row.Integer(kEpoch), row.Text(kCondition), row.Integer(kCreated)};
  if (row.Integer(kChecksum) != content.Sum()) {
    return absl::DataLossError("its checksum is wrong");
  }
  KILN_ASSIGN_OR_RETURN(auto device, devices.Get(connection, row.Integer(kFingerprint)));
  job->device = *device;
  const std::optional<JobState> state = ParseJobState(content.state);
  absl::StatusOr<Objective> objective = ParseObjective(content.objective, Objective());
  if (!state || !objective.ok() || !FromRequest(content.request, job) ||
      !FromCondition(content.condition, job)) {
    return absl::DataLossError("a column is not readable");
  }
  job->name = RowName(kJobPrefix, content.id);
  job->key = {std::string(content.signature), std::string(content.device), *objective,
              content.salt};
  job->canonical = std::string(content.canonical);
  job->client = std::string(content.client);
  job->state = *state;
  job->lease_epoch = content.lease_epoch;
  job->created = absl::FromUnixNanos(content.created);
  job->operations = static_cast<int>(row.Integer(kOperations));
  return absl::OkStatus();
}

// The job of the present row; DATA_LOSS is reported and named.
absl::StatusOr<Job> TakeJob(Connection& connection, const Statement& row, Reading reading) {
  Job job;
  const absl::Status status = ReadJob(connection, row, reading.devices, &job);
  if (absl::IsDataLoss(status)) {
    return RowDamaged(reading.quarantine, "job", RowName(kJobPrefix, row.Integer(kId)),
                      status.message());
  }
  KILN_RETURN_IF_ERROR(status);
  return job;
}

int64_t JobSum(const Job& job, int64_t id, absl::string_view objective, absl::string_view request,
               absl::string_view condition) {
  return Content{id,
                 job.key.signature,
                 job.canonical,
                 job.key.device,
                 objective,
                 job.key.salt,
                 job.client,
                 request,
                 Print(job.state),
                 job.lease_epoch,
                 condition,
                 absl::ToUnixNanos(job.created)}
      .Sum();
}

}  // namespace

// --- within a write ---

absl::StatusOr<std::optional<int64_t>> FindLiveJobRow(Connection& connection, const Key& key,
                                                      Reading reading) {
  const KeyColumns columns(key);
  int64_t id = 0;
  {
    Statement select = connection.Query(KILN_SELECT_JOBS KILN_JOB_OF_KEY, columns.signature,
                                        columns.device, columns.objective, columns.salt);
    KILN_ASSIGN_OR_RETURN(const bool found, select.Step());
    if (!found) return std::optional<int64_t>();
    id = select.Integer(kId);
    const absl::Status status = TakeJob(connection, select, reading).status();
    if (!IsRowDamaged(status)) {
      KILN_RETURN_IF_ERROR(status);
      return std::make_optional(id);
    }
  }
  KILN_RETURN_IF_ERROR(connection.Run("UPDATE job SET state = 'failed' WHERE id = ?", id));
  return std::optional<int64_t>();
}

absl::Status InsertJob(Connection& connection, const Job& job, int64_t id, Reading reading) {
  const KeyColumns key(job.key);
  KILN_ASSIGN_OR_RETURN(const int64_t workload, EnsureWorkload(connection, key.signature,
                                                               job.canonical, reading.quarantine));
  KILN_ASSIGN_OR_RETURN(const int64_t device, EnsureDevice(connection, job.device));
  const std::string request = RequestColumn(job);
  const std::string condition = ConditionColumn(job);
  return connection.Run(
      "INSERT INTO job (id, workload, device, objective, salt, fingerprint, client, request, "
      "state, "
      "lease_epoch, condition, created, checksum) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
      id, workload, key.device, key.objective, key.salt, device, job.client, request,
      Print(job.state), job.lease_epoch, condition, absl::ToUnixNanos(job.created),
      JobSum(job, id, key.objective, request, condition));
}

absl::StatusOr<Job> SelectExpectedJob(Connection& connection, absl::string_view name,
                                      int64_t expected_epoch, JobState expected_state,
                                      Reading reading) {
  KILN_ASSIGN_OR_RETURN(Job job, SelectJob(connection, name, reading));
  if (!IsEnd(job.state) && job.state == expected_state && job.lease_epoch == expected_epoch) {
    return job;
  }
  return MakeError(
      absl::StatusCode::kAborted,
      absl::StrCat(name, " is ", Print(job.state), " in lease ", job.lease_epoch, ", no longer ",
                   Print(expected_state), " in lease ", expected_epoch),
      {"JOB_CHANGED", {{"job", std::string(name)}}});
}

absl::Status ReplaceJob(Connection& connection, Job job, const Job& stored) {
  job.key = stored.key;
  job.canonical = stored.canonical;
  job.client = stored.client;
  job.created = stored.created;
  const int64_t id = *ParseRowName(kJobPrefix, stored.name);
  const std::string condition = ConditionColumn(job);
  return connection.Run(
      "UPDATE job SET state = ?, lease_epoch = ?, condition = ?, checksum = ? WHERE id = ?",
      Print(job.state), job.lease_epoch, condition,
      JobSum(job, id, Print(job.key.objective), RequestColumn(stored), condition), id);
}

// --- reads ---

absl::StatusOr<std::optional<Job>> SelectLiveJob(Connection& connection, const Key& key,
                                                 Reading reading) {
  const KeyColumns columns(key);
  Statement select = connection.Query(KILN_SELECT_JOBS KILN_JOB_OF_KEY, columns.signature,
                                      columns.device, columns.objective, columns.salt);
  KILN_ASSIGN_OR_RETURN(const bool found, select.Step());
  if (!found) return std::optional<Job>();
  absl::StatusOr<Job> job = TakeJob(connection, select, reading);
  if (IsRowDamaged(job.status())) return std::optional<Job>();
  KILN_RETURN_IF_ERROR(job.status());
  return std::make_optional(*std::move(job));
}

absl::StatusOr<Job> SelectJob(Connection& connection, absl::string_view name, Reading reading) {
  const std::optional<int64_t> id = ParseRowName(kJobPrefix, name);
  if (!id) return RowNotFound("job", name);
  Statement select = connection.Query(KILN_SELECT_JOBS "j.id = ?", *id);
  KILN_ASSIGN_OR_RETURN(const bool found, select.Step());
  if (!found) return RowNotFound("job", name);
  return TakeJob(connection, select, reading);
}

absl::StatusOr<PageOf<Job>> SelectJobs(Connection& connection, bool live_only,
                                       const PageWindow& window, Reading reading) {
  Statement select =
      live_only ? connection.Query(KILN_SELECT_JOBS "j.id < ? AND " KILN_LIVE " ORDER BY j.id DESC",
                                   window.before)
                : connection.Query(KILN_SELECT_JOBS "j.id < ? ORDER BY j.id DESC", window.before);
  PageOf<Job> page;
  int64_t last = 0;
  for (int seen = 0;; ++seen) {
    KILN_ASSIGN_OR_RETURN(const bool row, select.Step());
    if (!row) return page;
    if (seen == window.size) break;
    last = select.Integer(kId);
    absl::StatusOr<Job> job = TakeJob(connection, select, reading);
    if (job.ok()) {
      page.items.push_back(*std::move(job));
    } else if (!IsRowDamaged(job.status())) {
      return job.status();
    }
  }
  page.next_token = PageToken(last);
  return page;
}

}  // namespace kiln::db
