// SPDX-License-Identifier: Apache-2.0
// Turns an emitted source into a shared object with the host's C++ compiler, in a supervised child
// process with limits on time, memory and file size. The output is a function of compiler, flags
// and source alone: no path, time or build id goes into it. Thread-safe: several threads may
// compile at once.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "proto/contract/outcome.h"
#include "worker/compile/artifact_cache.h"
#include "worker/compile/cancel.h"
#include "worker/compile/temp_root.h"

namespace kiln::worker {

struct CompilerOptions {
  std::string supervisor;        // the worker's own binary
  std::string compiler = "g++";  // a path, or a name that PATH finds
  std::string cache_dir;         // empty: no cache
  int64_t cache_bytes = int64_t{1} << 30;
  absl::Duration limit = absl::Seconds(20);  // of one compilation
  int64_t memory_bytes = int64_t{4} << 30;   // of one compiler process
  int64_t output_bytes = int64_t{64} << 20;  // of any file that it writes
};

struct Compiled {
  std::string bytes;
  std::string digest;  // SHA-256 of `bytes`
  bool from_cache = false;
};

// What became of a source: an artifact, or the stage (compile, timeout, resources) and its first
// error line, at most 1 KiB.
struct CompileResult {
  std::optional<Compiled> artifact;
  Stage stage = Stage::kMeasured;
  std::string reason;
  absl::Duration spent;
};

class HostCompiler {
 public:
  // Compiles an empty program first. FAILED_PRECONDITION: NO_COMPILER, with what the compiler or
  // the system said. `root` must outlive it.
  static absl::StatusOr<std::unique_ptr<HostCompiler>> Make(const CompilerOptions& options,
                                                            const TempRoot& root);

  // "g++ 12.2.0 x86_64-linux-gnu": no path in it.
  const std::string& identity() const { return identity_; }
  // The identity with a hash of the flags: two equal ones make equal artifacts of equal sources.
  std::string Toolchain(const std::vector<std::string>& flags) const;

  // CANCELLED if `cancel` (may be null) said so; UNAVAILABLE and RESOURCE_EXHAUSTED: this machine
  // cannot compile just now (no process, no space), which is no candidate's fault.
  // `limit`: instead of the options', for sources that are not a candidate's.
  absl::StatusOr<CompileResult> Compile(absl::string_view source,
                                        const std::vector<std::string>& flags,
                                        const CancelToken* cancel,
                                        std::optional<absl::Duration> limit = std::nullopt) const;

 private:
  HostCompiler(CompilerOptions options, const TempRoot& root)
      : options_(std::move(options)), root_(root) {}
  absl::StatusOr<std::string> Ask(const std::string& question) const;
  absl::Status Identify();

  CompilerOptions options_;
  const TempRoot& root_;
  std::string identity_;
  std::optional<ArtifactCache> cache_;
};

// The first line of a compiler's output that tells an error, without folders, at most `limit` bytes
// of valid UTF-8.
std::string FirstErrorLine(absl::string_view log, size_t limit = 1024);

}  // namespace kiln::worker
