// SPDX-License-Identifier: Apache-2.0
// Values that the server's tests are made of: a matrix product, a CPU, a job of theirs, a record
// that would end it.
#pragma once

#include <cstdint>
#include <string>

#include "proto/contract/job.h"
#include "proto/contract/record.h"
#include "proto/contract/workload.h"

namespace kiln::server {

WorkloadSpec MatMulSpec(int64_t m, int64_t n, int64_t k);
// Checked; dies if the language refuses it.
Workload MatMul(int64_t m = 64, int64_t n = 48, int64_t k = 32);
DeviceFingerprint CpuDevice(int threads = 2);

// A job as TuneSchedule proposes it.
Job Proposal(const Workload& workload, const DeviceFingerprint& device,
             const std::string& client = "alice");
// The same without a workload behind it, for what does not look inside: `number` gives the key.
Job PlainProposal(int number, const std::string& device = "cpu-0123456789abcdef",
                  const std::string& client = "alice");

Artifact CompiledKernel();
Artifact KernelSource();
// Verified and measured, with both artifacts; the key is the job's.
Record RecordFor(const Job& job, const Workload& workload, double median_ns = 1000);
Outcome Measured(int sequence, double median_ns = 1000);
Outcome Failed(int sequence, Stage stage, const std::string& reason);

}  // namespace kiln::server
