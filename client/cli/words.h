// SPDX-License-Identifier: Apache-2.0
// The same for people: answers, jobs, workers and progress in words. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "client/kiln_client.h"
#include "proto/contract/workload.h"

namespace kiln::cli {

// "1.234 ms", "812 ns".
std::string TimeWords(double ns);
// Operations of a contraction; nothing for other programs.
std::optional<double> OperationsOf(const Workload& workload);
// ", 1740.2 GFLOP/s", or nothing.
std::string RateWords(std::optional<double> operations, double ns);

std::string AnswerWords(const client::Answer& answer, const Workload& workload);
std::string JobWords(const Job& job);
std::string JobLines(const std::vector<Job>& jobs);
std::string RecordLines(const std::vector<Record>& records);
std::string WorkerLines(const std::vector<client::WorkerState>& workers);
// One line without a newline: place in the queue, phase, done and total, best so far, time left.
std::string ProgressWords(const Job& job, std::optional<double> operations);

}  // namespace kiln::cli
