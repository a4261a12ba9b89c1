// SPDX-License-Identifier: Apache-2.0
#include "db/artifact_rows.h"

#include <zstd.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "proto/contract/error.h"
#include "proto/contract/workload.h"

namespace kiln::db {
namespace {

// Far above any cubin; a damaged size must not allocate more.
constexpr int64_t kMostBytes = int64_t{256} << 20;
constexpr int kLevel = 3;

// The bytes of the present row of (zstd, size), or nothing if they are damaged.
std::optional<std::string> Decompress(absl::string_view zstd, int64_t size) {
  if (size < 0 || size > kMostBytes) return std::nullopt;
  std::string bytes(size, '\0');
  const size_t result = ZSTD_decompress(bytes.data(), bytes.size(), zstd.data(), zstd.size());
  if (ZSTD_isError(result) || result != bytes.size()) return std::nullopt;
  return bytes;
}

}  // namespace

absl::StatusOr<ArtifactRow> MakeArtifactRow(const Artifact& artifact) {
  const int64_t size = artifact.bytes.size();
  if (size > kMostBytes) {
    return InvalidField("ARTIFACT_TOO_LARGE", "artifact.bytes", absl::StrCat(size, " bytes"),
                        "too large", absl::StrCat("at most ", kMostBytes));
  }
  const std::string digest = Sha256Hex(artifact.bytes);
  if (digest != artifact.digest) {
    return InvalidField("DIGEST_MISMATCH", "artifact.digest", artifact.digest,
                        "not the digest of the bytes", digest);
  }
  ArtifactRow row{digest, artifact.media, "", size};
  row.zstd.resize(ZSTD_compressBound(size));
  const size_t packed =
      ZSTD_compress(row.zstd.data(), row.zstd.size(), artifact.bytes.data(), size, kLevel);
  if (ZSTD_isError(packed)) return absl::InternalError(ZSTD_getErrorName(packed));
  row.zstd.resize(packed);
  return row;
}

absl::StatusOr<bool> InsertArtifact(Connection& connection, const ArtifactRow& row,
                                    Quarantine& quarantine) {
  if (quarantine.Contains("artifact", row.digest)) {
    Statement old = connection.Query("SELECT id, zstd FROM artifact WHERE digest = ?", row.digest);
    KILN_ASSIGN_OR_RETURN(const bool found, old.Step());
    if (found) {
      KILN_RETURN_IF_ERROR(quarantine.Heal(connection, "artifact", row.digest, old.Text(1)));
      KILN_RETURN_IF_ERROR(
          connection.Run("UPDATE artifact SET media = ?, size = ?, zstd = ? WHERE id = ?",
                         row.media, row.size, Blob{row.zstd}, old.Integer(0)));
      return true;
    }
  }
  KILN_RETURN_IF_ERROR(connection.Run(
      "INSERT INTO artifact (digest, media, size, zstd, created) "
      "VALUES (?, ?, ?, ?, ?) ON CONFLICT (digest) DO NOTHING",
      row.digest, row.media, row.size, Blob{row.zstd}, absl::ToUnixNanos(absl::Now())));
  return connection.changed() > 0;
}

absl::StatusOr<Artifact> SelectArtifact(Connection& connection, absl::string_view digest,
                                        Quarantine& quarantine) {
  Statement select =
      connection.Query("SELECT media, size, zstd FROM artifact WHERE digest = ?", digest);
  KILN_ASSIGN_OR_RETURN(const bool found, select.Step());
  if (!found) return RowNotFound("artifact", digest);
  std::optional<std::string> bytes = Decompress(select.Text(2), select.Integer(1));
  if (!bytes || Sha256Hex(*bytes) != digest) {
    return RowDamaged(quarantine, "artifact", digest, "its bytes do not have its digest");
  }
  return Artifact{std::string(digest), std::string(select.Text(0)), *std::move(bytes)};
}

absl::StatusOr<bool> SelectHasArtifact(Connection& connection, absl::string_view digest,
                                       Quarantine& quarantine) {
  if (quarantine.Contains("artifact", digest)) return false;
  return connection.Query("SELECT 1 FROM artifact WHERE digest = ?", digest).Step();
}

}  // namespace kiln::db
