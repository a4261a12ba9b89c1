// SPDX-License-Identifier: Apache-2.0
// Jobs and operations as messages: states, metadata, and the answer of a done one. Thread-safe;
// reads the store.
//
// An operation whose answer was stored already is not written anywhere: its name holds the record's
// id, so that it can be asked for again at any time, after a restart too. Such names begin with
// "operations/stored-".
#pragma once

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "server/core.h"

namespace google::longrunning {
class Operation;
}
namespace kiln::v1 {
class Job;
class Record;
}  // namespace kiln::v1

namespace kiln::server {

class OperationMessages {
 public:
  explicit OperationMessages(Core* core) : core_(core) {}

  // With place in the queue; phase "waiting" if no worker of its device is there.
  void Fill(const Job& job, v1::Job* message) const;
  // With `published`; without raw samples if `summary`.
  absl::Status Fill(const Record& record, bool summary, v1::Record* message) const;
  // The operation as it is. Codes of the store.
  absl::Status Fill(const JobTable::OperationView& view, google::longrunning::Operation* message);

  // A done operation whose answer is a stored record; `workload` (may be null) gives the arguments'
  // names.
  absl::Status FillStored(const std::string& name, const Record& record, const Workload* workload,
                          google::longrunning::Operation* message) const;
  // One for this caller; the same again for the same request_id.
  std::string StoredName(const Record& record, const std::string& client,
                         const std::string& request_id) const;
  // The record's id in such a name; nothing if it is another kind of name.
  static std::optional<std::string> StoredRecord(absl::string_view name);

 private:
  // What a job that succeeded answers: its record, or the one that was not beaten by it.
  absl::StatusOr<Record> AnswerOf(const Job& job) const;

  Core* const core_;
  Lru<std::shared_ptr<const std::string>> answers_{
      8 << 20};  // of ended jobs: thousands may wait for one
};

}  // namespace kiln::server
