// SPDX-License-Identifier: Apache-2.0
// Artifacts as rows: content-addressed, compressed.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "db/shared_rows.h"

namespace kiln::db {

// An artifact as its columns, made outside the writer's thread. INVALID_ARGUMENT: the digest is not
// that of the bytes, or they are too many.
struct ArtifactRow {
  std::string digest, media, zstd;
  int64_t size = 0;
};
absl::StatusOr<ArtifactRow> MakeArtifactRow(const Artifact& artifact);

// Within a write. Replaces a row that is known to be damaged, else leaves what is there. Says
// whether it stored.
absl::StatusOr<bool> InsertArtifact(Connection& connection, const ArtifactRow& row,
                                    Quarantine& quarantine);

// NOT_FOUND; DATA_LOSS, reported.
absl::StatusOr<Artifact> SelectArtifact(Connection& connection, absl::string_view digest,
                                        Quarantine& quarantine);
// Whether the row is there and not known to be damaged. Does not read the bytes.
absl::StatusOr<bool> SelectHasArtifact(Connection& connection, absl::string_view digest,
                                       Quarantine& quarantine);

}  // namespace kiln::db
