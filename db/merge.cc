// SPDX-License-Identifier: Apache-2.0
#include "db/merge.h"

#include <map>
#include <memory>
#include <optional>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "db/artifact_rows.h"
#include "db/migrate.h"
#include "db/names.h"
#include "db/open_database.h"
#include "db/record_rows.h"
#include "db/writer.h"
#include "proto/contract/error.h"

namespace kiln::db {
namespace {

constexpr int kTransaction = 1000;

// What two records must share to be one and the same.
auto Content(const Record& r) {
  return std::tuple(Print(r.key), r.canonical, Print(r.schedule), r.measurement.median_ns, r.job,
                    r.worker, r.kiln_version, absl::ToUnixNanos(r.created));
}

class Merge {
 public:
  Merge(OwnedDatabase into, OwnedDatabase from, bool dry_run)
      : into_lock_(std::move(into.lock)),
        from_lock_(std::move(from.lock)),
        from_(std::move(from.writer)),
        dry_run_(dry_run),
        writer_(std::move(into.writer)),
        quarantine_(&writer_) {}

  absl::StatusOr<MergeReport> Run() {
    KILN_RETURN_IF_ERROR(writer_.Run([&](Connection& c) { return quarantine_.Load(c); }));
    KILN_RETURN_IF_ERROR(CopyAll("SELECT digest FROM artifact ORDER BY id", &Merge::CopyArtifact));
    KILN_RETURN_IF_ERROR(
        CopyAll("SELECT printf('rec-%016x', id) FROM record ORDER BY id", &Merge::CopyRecord));
    KILN_RETURN_IF_ERROR(CopyAll(
        "SELECT max(id) FROM publication GROUP BY workload, device, objective, salt ORDER BY 1",
        &Merge::CopyPublication));
    return std::move(report_);
  }

 private:
  using Copy = absl::Status (Merge::*)(Connection& into, const std::string& name);

  // Each name that the query gives, some at a time in one transaction.
  absl::Status CopyAll(const char* names, Copy copy) {
    Statement select = from_->Query(names);
    for (bool more = true; more;) {
      KILN_RETURN_IF_ERROR(writer_.Run([&](Connection& into) -> absl::Status {
        for (int i = 0; i < kTransaction; ++i) {
          KILN_ASSIGN_OR_RETURN(more, select.Step());
          if (!more) return absl::OkStatus();
          const absl::Status status = (this->*copy)(into, std::string(select.Text(0)));
          if (absl::IsDataLoss(status)) {
            ++report_.damaged;
          } else {
            KILN_RETURN_IF_ERROR(status);
          }
        }
        return absl::OkStatus();
      }));
    }
    return absl::OkStatus();
  }

  absl::Status CopyArtifact(Connection& into, const std::string& digest) {
    KILN_ASSIGN_OR_RETURN(const bool there, SelectHasArtifact(into, digest, quarantine_));
    if (there) return absl::OkStatus();
    KILN_ASSIGN_OR_RETURN(const Artifact artifact, SelectArtifact(*from_, digest, unwritten_));
    ++report_.artifacts;
    if (dry_run_) return absl::OkStatus();
    KILN_ASSIGN_OR_RETURN(const ArtifactRow row, MakeArtifactRow(artifact));
    return InsertArtifact(into, row, quarantine_).status();
  }

  absl::Status CopyRecord(Connection& into, const std::string& name) {
    KILN_ASSIGN_OR_RETURN(const Record record,
                          SelectRecord(*from_, name, {from_devices_, unwritten_}));
    int64_t id = ParseRowName(kRecordPrefix, name).value_or(0);
    const absl::StatusOr<Record> here = SelectRecord(into, name, {into_devices_, quarantine_});
    if (here.ok() && Content(*here) == Content(record)) {
      ++report_.known;
      rows_[name] = id;
      return absl::OkStatus();
    }
    if (!absl::IsNotFound(here.status())) {  // another one has the name, or had it
      KILN_ASSIGN_OR_RETURN(id, into.QueryInteger("SELECT max(id) + 1 FROM record"));
    }
    ++report_.records;
    rows_[name] = id;
    if (dry_run_) return absl::OkStatus();
    KILN_ASSIGN_OR_RETURN(const int64_t device, EnsureDevice(into, record.device));
    return InsertRecord(into, RecordRow(record), id, device, absl::ToUnixNanos(record.created),
                        quarantine_)
        .status();
  }

  // `name`: of a publication there, the last one of its key.
  absl::Status CopyPublication(Connection& into, const std::string& name);
  // The last publication's record here; none if there is no publication, "" if it is a withdrawal.
  absl::StatusOr<std::optional<std::string>> WinnerHere(Connection& into, const KeyColumns& key);

  InstanceLock into_lock_, from_lock_;
  std::unique_ptr<Connection> from_;
  const bool dry_run_;
  Writer writer_;
  Quarantine quarantine_;
  Quarantine unwritten_{nullptr};  // of the other file, which nobody writes
  DeviceTable into_devices_, from_devices_;
  std::map<std::string, int64_t> rows_;  // records there -> rows here
  MergeReport report_;
};

absl::StatusOr<std::optional<std::string>> Merge::WinnerHere(Connection& into,
                                                             const KeyColumns& key) {
  Statement select = into.Query(
      "SELECT ifnull(p.record, -1) FROM publication p JOIN workload w ON w.id = p.workload "
      "WHERE w.signature = ? AND p.device = ? AND p.objective = ? AND p.salt = ? "
      "ORDER BY p.id DESC LIMIT 1",
      key.signature, key.device, key.objective, key.salt);
  KILN_ASSIGN_OR_RETURN(const bool found, select.Step());
  if (!found) return std::optional<std::string>();
  const int64_t row = select.Integer(0);
  return std::make_optional(row == -1 ? std::string() : RowName(kRecordPrefix, row));
}

absl::Status Merge::CopyPublication(Connection& into, const std::string& name) {
  Key key;
  std::string winner;  // there; "": withdrawn
  {
    Statement select = from_->Query(
        "SELECT w.signature, w.canonical, p.device, p.objective, p.salt, ifnull(p.record, -1) "
        "FROM publication p JOIN workload w ON w.id = p.workload WHERE p.id = CAST(? AS INTEGER)",
        name);
    KILN_ASSIGN_OR_RETURN(const bool found, select.Step());
    if (!found) return absl::DataLossError("a publication without its workload");
    KILN_ASSIGN_OR_RETURN(const Objective objective, ParseObjective(select.Text(3), Objective()));
    key = {std::string(select.Text(0)), std::string(select.Text(2)), objective, select.Integer(4)};
    const int64_t row = select.Integer(5);
    if (row != -1) winner = RowName(kRecordPrefix, row);
  }
  if (!winner.empty() && rows_.count(winner) == 0) return absl::DataLossError("it was left out");
  const KeyColumns columns(key);
  KILN_ASSIGN_OR_RETURN(const std::optional<std::string> here, WinnerHere(into, columns));
  std::optional<int64_t> row;
  if (!winner.empty()) row = rows_[winner];
  const std::string renamed = row ? RowName(kRecordPrefix, *row) : "";
  if (here && *here == renamed) return absl::OkStatus();
  std::string reason = "merged";
  if (!here) {
    if (winner.empty()) return absl::OkStatus();
    ++report_.published;
  } else {
    MergeConflict conflict{Print(key), *here, renamed, false, "withdrawn"};
    if (winner.empty()) {
      conflict.replaced = true;
    } else if (!here->empty()) {
      KILN_ASSIGN_OR_RETURN(const Record there,
                            SelectRecord(*from_, winner, {from_devices_, unwritten_}));
      absl::StatusOr<Record> present = SelectRecord(into, *here, {into_devices_, quarantine_});
      conflict.why = "the one here is damaged";
      conflict.replaced = !present.ok() || Preferred(there, *present, &conflict.why);
    }
    reason = absl::StrCat("merged: ", conflict.why);
    report_.conflicts.push_back(conflict);
    if (!conflict.replaced) return absl::OkStatus();
  }
  if (dry_run_) return absl::OkStatus();
  KILN_ASSIGN_OR_RETURN(
      const int64_t workload,
      into.QueryInteger("SELECT id FROM workload WHERE signature = ?", columns.signature));
  KILN_ASSIGN_OR_RETURN(const int64_t id,
                        into.QueryInteger("SELECT ifnull(max(id), 0) + 1 FROM publication"));
  return InsertPublication(into, id, columns, workload, row, row ? "publish" : "withdraw", reason);
}

}  // namespace

bool Preferred(const Record& there, const Record& here, std::string* why) {
  const Measurement &a = there.measurement, &b = here.measurement;
  auto decide = [&](const char* rule, bool preferred) {
    *why = rule;
    return preferred;
  };
  if (a.method_version != b.method_version) {
    return decide("newer method", a.method_version > b.method_version);
  }
  if (a.timer != b.timer) return decide("finer timer", a.timer < b.timer);
  if (a.ci95_hi_ns < b.ci95_lo_ns || b.ci95_hi_ns < a.ci95_lo_ns) {
    return decide("faster", a.median_ns < b.median_ns);
  }
  if (there.budget_exhausted != here.budget_exhausted) {
    return decide("whole search", here.budget_exhausted);
  }
  if (there.created != here.created) return decide("newer", there.created > here.created);
  return decide("order of texts", std::pair(Print(there.schedule), there.id) >
                                      std::pair(Print(here.schedule), here.id));
}

absl::StatusOr<MergeReport> MergeDatabase(const SqliteOptions& into, const std::string& from,
                                          bool dry_run) {
  KILN_ASSIGN_OR_RETURN(OwnedDatabase source,
                        OpenDatabase({.path = from, .read_only = true}, Migrations()));
  SqliteOptions options = into;
  options.read_only = dry_run;
  KILN_ASSIGN_OR_RETURN(OwnedDatabase target, OpenDatabase(options, Migrations()));
  return Merge(std::move(target), std::move(source), dry_run).Run();
}

absl::Status ExportDatabase(const SqliteOptions& from, const std::string& to) {
  KILN_ASSIGN_OR_RETURN(OwnedDatabase source, OpenDatabase(from, Migrations()));
  return CopyDatabase(*source.writer, to);
}

}  // namespace kiln::db
