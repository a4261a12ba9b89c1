// SPDX-License-Identifier: Apache-2.0
#include "db/operation_rows.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "db/names.h"
#include "proto/contract/error.h"

namespace kiln::db {
namespace {

#define KILN_SELECT_OPERATIONS \
  "SELECT id, job, client, request_id, cancelled, created FROM operation WHERE "

Operation ReadOperation(const Statement& row) {
  Operation operation;
  operation.name = RowName(kOperationPrefix, row.Integer(0));
  operation.job = RowName(kJobPrefix, row.Integer(1));
  operation.client = std::string(row.Text(2));
  operation.request_id = std::string(row.Text(3));
  operation.cancelled = row.Integer(4) != 0;
  operation.created = absl::FromUnixNanos(row.Integer(5));
  return operation;
}

}  // namespace

absl::Status InsertOperation(Connection& connection, int64_t id, Operation* operation) {
  KILN_ASSIGN_OR_RETURN(std::optional<Operation> known,
                        SelectRequest(connection, operation->client, operation->request_id));
  if (known) {
    return MakeError(absl::StatusCode::kAlreadyExists,
                     absl::StrCat("request ", operation->request_id, " is operation ", known->name),
                     {"REQUEST_EXISTS", {{"operation", known->name}}});
  }
  operation->name = RowName(kOperationPrefix, id);
  return connection.Run(
      "INSERT INTO operation (id, job, client, request_id, cancelled, created) "
      "VALUES (?, ?, ?, ?, ?, ?)",
      id, *ParseRowName(kJobPrefix, operation->job), operation->client, operation->request_id,
      operation->cancelled ? 1 : 0, absl::ToUnixNanos(operation->created));
}

absl::Status SetCancelled(Connection& connection, absl::string_view name) {
  const std::optional<int64_t> id = ParseRowName(kOperationPrefix, name);
  if (!id) return RowNotFound("operation", name);
  KILN_RETURN_IF_ERROR(connection.Run("UPDATE operation SET cancelled = 1 WHERE id = ?", *id));
  return connection.changed() > 0 ? absl::OkStatus() : RowNotFound("operation", name);
}

absl::Status RemoveOperation(Connection& connection, absl::string_view name) {
  const std::optional<int64_t> id = ParseRowName(kOperationPrefix, name);
  if (!id) return RowNotFound("operation", name);
  KILN_RETURN_IF_ERROR(connection.Run("DELETE FROM operation WHERE id = ?", *id));
  return connection.changed() > 0 ? absl::OkStatus() : RowNotFound("operation", name);
}

absl::StatusOr<Operation> SelectOperation(Connection& connection, absl::string_view name) {
  const std::optional<int64_t> id = ParseRowName(kOperationPrefix, name);
  if (!id) return RowNotFound("operation", name);
  Statement select = connection.Query(KILN_SELECT_OPERATIONS "id = ?", *id);
  KILN_ASSIGN_OR_RETURN(const bool found, select.Step());
  if (!found) return RowNotFound("operation", name);
  return ReadOperation(select);
}

absl::StatusOr<std::optional<Operation>> SelectRequest(Connection& connection,
                                                       absl::string_view client,
                                                       absl::string_view request_id) {
  if (request_id.empty()) return std::optional<Operation>();
  Statement select =
      connection.Query(KILN_SELECT_OPERATIONS "client = ? AND request_id = ? AND request_id <> ''",
                       client, request_id);
  KILN_ASSIGN_OR_RETURN(const bool found, select.Step());
  if (!found) return std::optional<Operation>();
  return std::make_optional(ReadOperation(select));
}

absl::StatusOr<PageOf<Operation>> SelectOperations(Connection& connection,
                                                   const PageWindow& window) {
  Statement select =
      connection.Query(KILN_SELECT_OPERATIONS "id < ? ORDER BY id DESC", window.before);
  PageOf<Operation> page;
  while (true) {
    KILN_ASSIGN_OR_RETURN(const bool row, select.Step());
    if (!row) return page;
    if (static_cast<int>(page.items.size()) == window.size) break;
    page.items.push_back(ReadOperation(select));
    page.next_token = PageToken(select.Integer(0));
  }
  return page;
}

}  // namespace kiln::db
