// SPDX-License-Identifier: Apache-2.0
// Records of as many different matrix products as one likes, as large as real ones, for benchmarks
// of the database and of lookups. Number n is the same in every process.
#pragma once

#include <cstdint>
#include <string>

#include "db/store.h"
#include "proto/contract/record.h"
#include "proto/contract/spec.h"

namespace kiln::bench {

// f32, M and N from n, K = 64: different for n below a million.
WorkloadSpec NthSpec(int64_t n);
// Of a CPU that nobody has; all records are its.
DeviceFingerprint BenchDevice();
// Published answers need their artifacts: one compiled form and one source serve all records.
absl::Status PutBenchArtifacts(db::Store* store);
Record NthRecord(int64_t n);

}  // namespace kiln::bench
