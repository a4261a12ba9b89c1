// SPDX-License-Identifier: Apache-2.0
// A wire Selection, understood: canonical form, signature, device, objective, key. Pure but for
// Lookup's caches.
#pragma once

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/lookup.h"

namespace kiln::v1 {
class Selection;
}

namespace kiln::server {

// INVALID_ARGUMENT: as wire::FromWire and CheckWorkload say, an unknown or ambiguous device, or
// another signature than the client's own (SIGNATURE_MISMATCH). Others as Lookup::Resolve.
absl::StatusOr<Question> Understand(const v1::Selection& selection, Lookup* lookup);

}  // namespace kiln::server
