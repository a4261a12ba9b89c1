// SPDX-License-Identifier: Apache-2.0
// This build of Kiln, as records and registrations carry it.
#pragma once

namespace kiln::worker {

inline constexpr char kVersion[] = KILN_VERSION;

}  // namespace kiln::worker
