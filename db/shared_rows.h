// SPDX-License-Identifier: Apache-2.0
// What rows of records, jobs and outcomes refer to: workloads and devices; and what reading any row
// needs.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <shared_mutex>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "db/connection.h"
#include "db/quarantine.h"
#include "db/store.h"
#include "proto/contract/record.h"

namespace kiln::db {

// Devices by row, parsed once: there are few, and each lookup needs one. Thread-safe.
class DeviceTable {
 public:
  // DATA_LOSS: the row is missing or its facts do not have its name.
  absl::StatusOr<std::shared_ptr<const DeviceFingerprint>> Get(Connection& connection, int64_t row);

 private:
  std::shared_mutex mutex_;
  std::map<int64_t, std::shared_ptr<const DeviceFingerprint>> devices_;  // guarded by mutex_
};

// What each read of rows needs beside the connection.
struct Reading {
  DeviceTable& devices;
  Quarantine& quarantine;
};

// A key as columns have it.
struct KeyColumns {
  explicit KeyColumns(const Key& key)
      : signature(key.signature),
        device(key.device),
        objective(Print(key.objective)),
        salt(key.salt) {}
  std::string signature, device, objective;
  int64_t salt;
};

// Whether the text has the signature: SHA-256 of "kiln/1\n" and the text.
bool HasSignature(absl::string_view canonical, absl::string_view signature);
// The workload's row, made if it is new. Where another text is stored and the given one has the
// signature, the row is damaged: the old text goes to quarantine and the given one takes its place.
// INVALID_ARGUMENT if it has not. Within a write.
absl::StatusOr<int64_t> EnsureWorkload(Connection& connection, absl::string_view signature,
                                       absl::string_view canonical, Quarantine& quarantine);
// The device's row, made if it is new. Within a write.
absl::StatusOr<int64_t> EnsureDevice(Connection& connection, const DeviceFingerprint& device);
absl::StatusOr<std::vector<DeviceFingerprint>> SelectDevices(Connection& connection,
                                                             Reading reading);

// Reports a damaged row and says so as DATA_LOSS.
absl::Status RowDamaged(Quarantine& quarantine, absl::string_view kind, absl::string_view name,
                        absl::string_view why);
bool IsRowDamaged(const absl::Status& status);
absl::Status RowNotFound(absl::string_view kind, absl::string_view name);

// A page in the order of falling row numbers.
struct PageWindow {
  int size = 0;
  int64_t before = 0;  // row number
};
absl::StatusOr<PageWindow> ParsePage(const Page& page);  // INVALID_ARGUMENT: the token
std::string PageToken(int64_t last);

}  // namespace kiln::db
