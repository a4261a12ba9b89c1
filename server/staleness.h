// SPDX-License-Identifier: Apache-2.0
// Whether a stored record is of today: toolchain, emitter and method are no part of the key, but
// attributes that make it stale. Pure.
#pragma once

#include <string>
#include <vector>

#include "proto/contract/record.h"
#include "server/roster.h"

namespace kiln::server {

// Each difference in a sentence, against the worker that agrees most; none if some worker agrees in
// all, or none is there to compare with (a database without workers answers exactly). The workers
// are those of the record's device.
std::vector<std::string> StaleBecause(const Record& record, const std::vector<Worker>& workers);
std::vector<std::string> StaleBecause(const std::string& toolchain, const std::string& emitter,
                                      int method_version, const std::vector<Worker>& workers);

// Of two records of one key.
bool DiffersInAttributes(const Record& a, const Record& b);

}  // namespace kiln::server
