// SPDX-License-Identifier: Apache-2.0
#include "db/shared_rows.h"

#include <algorithm>
#include <limits>
#include <mutex>
#include <utility>

#include "absl/strings/str_cat.h"
#include "db/names.h"
#include "proto/contract/error.h"
#include "proto/contract/workload.h"

namespace kiln::db {
namespace {

// The device of the present row of (name, line, product, memory_bytes).
absl::StatusOr<DeviceFingerprint> ReadDevice(const Statement& row) {
  absl::StatusOr<DeviceFingerprint> device = ParseDevice(row.Text(1));
  if (!device.ok() || DeviceId(*device) != row.Text(0)) {
    return absl::DataLossError("a device's facts do not have its name");
  }
  device->name = std::string(row.Text(2));
  device->memory_bytes = row.Integer(3);
  return device;
}

}  // namespace

absl::StatusOr<std::shared_ptr<const DeviceFingerprint>> DeviceTable::Get(Connection& connection,
                                                                          int64_t row) {
  {
    std::shared_lock<std::shared_mutex> lock(mutex_);
    auto it = devices_.find(row);
    if (it != devices_.end()) return it->second;
  }
  Statement select =
      connection.Query("SELECT name, line, product, memory_bytes FROM device WHERE id = ?", row);
  KILN_ASSIGN_OR_RETURN(const bool found, select.Step());
  if (!found) return absl::DataLossError("a device's row is missing");
  KILN_ASSIGN_OR_RETURN(DeviceFingerprint device, ReadDevice(select));
  auto shared = std::make_shared<const DeviceFingerprint>(std::move(device));
  std::lock_guard<std::shared_mutex> lock(mutex_);
  devices_[row] = shared;
  return shared;
}

bool HasSignature(absl::string_view canonical, absl::string_view signature) {
  return Sha256Hex(absl::StrCat("kiln/1\n", canonical)) == signature;
}

absl::StatusOr<int64_t> EnsureWorkload(Connection& connection, absl::string_view signature,
                                       absl::string_view canonical, Quarantine& quarantine) {
  {
    Statement select =
        connection.Query("SELECT id, canonical FROM workload WHERE signature = ?", signature);
    KILN_ASSIGN_OR_RETURN(const bool found, select.Step());
    if (found) {
      const int64_t id = select.Integer(0);
      if (select.Text(1) == canonical) return id;
      if (!HasSignature(canonical, signature)) {
        return InvalidField("WRONG_SIGNATURE", "key.signature", signature,
                            "not the signature of the canonical text", "SHA-256 of the text");
      }
      KILN_RETURN_IF_ERROR(quarantine.Heal(connection, "workload", signature, select.Text(1)));
      KILN_RETURN_IF_ERROR(
          connection.Run("UPDATE workload SET canonical = ? WHERE id = ?", canonical, id));
      return id;
    }
  }
  KILN_RETURN_IF_ERROR(connection.Run("INSERT INTO workload (signature, canonical) VALUES (?, ?)",
                                      signature, canonical));
  return connection.last_id();
}

absl::StatusOr<int64_t> EnsureDevice(Connection& connection, const DeviceFingerprint& device) {
  const std::string name = DeviceId(device);
  absl::StatusOr<int64_t> id =
      connection.QueryInteger("SELECT id FROM device WHERE name = ?", name);
  if (!absl::IsNotFound(id.status())) return id;
  KILN_RETURN_IF_ERROR(
      connection.Run("INSERT INTO device (name, line, product, memory_bytes) VALUES (?, ?, ?, ?)",
                     name, Print(device), device.name, device.memory_bytes));
  return connection.last_id();
}

absl::StatusOr<std::vector<DeviceFingerprint>> SelectDevices(Connection& connection,
                                                             Reading reading) {
  Statement select =
      connection.Query("SELECT name, line, product, memory_bytes FROM device ORDER BY id");
  std::vector<DeviceFingerprint> devices;
  while (true) {
    KILN_ASSIGN_OR_RETURN(const bool row, select.Step());
    if (!row) return devices;
    absl::StatusOr<DeviceFingerprint> device = ReadDevice(select);
    if (device.ok()) {
      devices.push_back(*std::move(device));
    } else {
      reading.quarantine.Report("device", select.Text(0), device.status().message());
    }
  }
}

absl::Status RowDamaged(Quarantine& quarantine, absl::string_view kind, absl::string_view name,
                        absl::string_view why) {
  quarantine.Report(kind, name, why);
  return MakeError(absl::StatusCode::kDataLoss,
                   absl::StrCat(kind, " ", name, " is damaged in the database: ", why),
                   {"ROW_DAMAGED", {{"name", std::string(name)}}});
}

bool IsRowDamaged(const absl::Status& status) {
  return absl::IsDataLoss(status) && GetErrorInfo(status).reason == "ROW_DAMAGED";
}

absl::Status RowNotFound(absl::string_view kind, absl::string_view name) {
  return MakeError(absl::StatusCode::kNotFound, absl::StrCat("there is no ", kind, " ", name),
                   {"NOT_FOUND", {{"name", std::string(name)}}});
}

absl::StatusOr<PageWindow> ParsePage(const Page& page) {
  PageWindow window;
  window.size = page.size < 1 ? Page().size : std::min(page.size, 1000);
  window.before = std::numeric_limits<int64_t>::max();
  if (page.token.empty()) return window;
  const std::optional<int64_t> before = ParseRowName("", page.token);
  if (!before || *before < 0) {
    return InvalidField("BAD_PAGE_TOKEN", "page_token", page.token, "no token of a list",
                        "what the last page returned");
  }
  window.before = *before;
  return window;
}

std::string PageToken(int64_t last) { return RowName("", last); }

}  // namespace kiln::db
