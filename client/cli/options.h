// SPDX-License-Identifier: Apache-2.0
// The command line as plain data. The only place of the CLI that reads the environment.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"

namespace kiln::cli {

enum class Command {
  kTune,
  kLookup,
  kRun,
  kInspect,
  kJobs,
  kRecords,
  kWorkers,
  kJobGet,
  kJobWatch,
  kJobCancel,
  kRecordGet,
  kArtifactGet
};

// SELECT of CLI.md, as it was typed.
struct SelectText {
  std::string program;  // OP or FILE.kiln
  std::string dims, types, strides, alignment, alias, policy, objective;
  std::string device = "cpu";
};

struct Options {
  Command command = Command::kTune;
  std::string server;
  bool json = false;
  std::optional<double> timeout_seconds;
  bool local = false;
  std::string database;  // of --local; empty: a temporary one

  SelectText select;              // tune, lookup, run, inspect
  std::optional<int64_t> trials;  // tune
  std::optional<double> seconds, wait_worker;
  uint64_t seed = 0;
  bool force = false;
  std::string min_quality = "exact";  // lookup
  std::string inputs, outputs;        // run: "A=a.npy,B=b.npy"
  std::string name;                   // job, record, artifact
  std::string output_file;            // artifact get
};

// What to print at once and succeed, instead of a command: --help and --version.
struct HelpText {
  std::string text;
};

struct ParsedLine {
  Options options;
  std::optional<HelpText> help;
};

// INVALID_ARGUMENT (USAGE) says what is wrong with the command line.
absl::StatusOr<ParsedLine> ParseCommandLine(int argc, const char* const* argv);

// Whether --json is among the arguments, for errors of a line that could not be parsed.
bool AsksForJson(int argc, const char* const* argv);

}  // namespace kiln::cli
