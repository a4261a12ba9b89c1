// SPDX-License-Identifier: Apache-2.0
// From SELECT, as it was typed, to a selection that the client library takes, and back to a command
// line that selects the same.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "client/cli/options.h"
#include "client/kiln_client.h"

namespace kiln::cli {

// INVALID_ARGUMENT names the option and the part of it at fault; NO_SUCH_OPERATOR lists the known
// ones.
absl::StatusOr<client::Selection> ParseSelect(const SelectText& select);

// "matmul --dims M=4,N=4,K=4": what to put behind `kiln tune`.
std::string SelectWords(const SelectText& select);

}  // namespace kiln::cli
