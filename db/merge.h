// SPDX-License-Identifier: Apache-2.0
// Whole databases: merging one into another, and making a copy to ship. Both own their file while
// they work, so that no server may. A merge copies what was stored as it was stored, devices,
// versions and moments included, and relabels nothing; it may be run again, or after an
// interruption.
//
// Where both have a winner for one key, one of them is chosen, and in either order of merging it is
// the same one (Preferred):
//   1. method of measuring: the newer version, then the finer timer; times of different ones are
//      never compared;
//   2. the faster, if the 95 % intervals of the medians do not touch;
//   3. the one whose search did not end by its budget;
//   4. the newer; the greater schedule text; the greater id.
// What was withdrawn in one of them stays withdrawn.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "db/sqlite_store.h"
#include "proto/contract/record.h"

namespace kiln::db {

struct MergeConflict {
  std::string key;          // Print(Key)
  std::string here, there;  // ids of the two winners; "": withdrawn
  bool replaced = false;    // there's answers now
  std::string why;          // "faster", "newer method", ...
};

struct MergeReport {
  int64_t artifacts = 0, records = 0;  // that were new
  int64_t known = 0;                   // records that were here already
  int64_t published = 0;               // keys that had no answer here
  int64_t damaged = 0;                 // rows that were left out
  std::vector<MergeConflict> conflicts;
};

// Whether `there` is to answer instead of `here`, and by which of the rules. Records of one key.
bool Preferred(const Record& there, const Record& here, std::string* why);

// Merges the file `from`, which nobody may write meanwhile, into `into`. A dry run changes nothing
// and reports the same. Codes as OpenSqliteStore, for either file.
absl::StatusOr<MergeReport> MergeDatabase(const SqliteOptions& into, const std::string& from,
                                          bool dry_run);
// A copy that needs no log and can be read anywhere (SqliteOptions::read_only). ALREADY_EXISTS.
absl::Status ExportDatabase(const SqliteOptions& from, const std::string& to);

}  // namespace kiln::db
