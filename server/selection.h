// SPDX-License-Identifier: Apache-2.0
// A wire Selection, understood: canonical form, signature, device, objective, key; or only spelt,
// which is quicker by far and is enough where an answer is kept for the very question. Pure but for
// Lookup's caches.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/lookup.h"

namespace kiln::v1 {
class Selection;
class WorkloadSpec;
}  // namespace kiln::v1

namespace kiln::server {

// INVALID_ARGUMENT: as wire::FromWire and CheckWorkload say, an unknown or ambiguous device, or
// another signature than the client's own (SIGNATURE_MISMATCH). Others as Lookup::Resolve.
absl::StatusOr<Question> Understand(const v1::Selection& selection, Lookup* lookup);

// A selection as one text, to the byte: equal texts ask the same, though the same may be asked in
// many texts. The client's signature is left out.
struct Spelling {
  std::string question;
  std::string device_id;
};
// Errors of device and objective, as above. The workload is not looked into.
absl::StatusOr<Spelling> Spell(const v1::Selection& selection, Lookup* lookup);
std::string QuestionText(const v1::WorkloadSpec& spec, absl::string_view device_id,
                         const Objective& objective, int64_t salt);

}  // namespace kiln::server
