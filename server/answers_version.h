// SPDX-License-Identifier: Apache-2.0
// What kept answers depend on beside the records: the language (which spec is which workload) and
// the wire (what is sent). Its sources' digest is made at build time (answers_version.cmake), so
// that a change of any of them makes the answers of before no answers any more.
#pragma once

#include <cstdint>

namespace kiln::server {

extern const int64_t kAnswersVersion;

}  // namespace kiln::server
