// SPDX-License-Identifier: Apache-2.0
// The command line: parses it, runs one command, prints its error, and returns the exit code.
#include <cstdio>
#include <cstring>

#include "client/cli/commands.h"
#include "client/cli/interrupt.h"
#include "client/cli/options.h"
#include "client/cli/output.h"
#include "worker/compile/supervisor.h"
#include "worker/compiler/deep_stack.h"

namespace kiln::cli {
namespace {

absl::Status RunCommand(Session& session) {
  switch (session.options().command) {
    case Command::kTune:
      return RunTune(session);
    case Command::kLookup:
      return RunLookup(session);
    case Command::kRun:
      return RunRun(session);
    case Command::kInspect:
      return RunInspect(session);
    case Command::kJobs:
      return RunJobs(session);
    case Command::kRecords:
      return RunRecords(session);
    case Command::kWorkers:
      return RunWorkers(session);
    case Command::kJobGet:
      return RunJobGet(session);
    case Command::kJobWatch:
      return RunJobWatch(session);
    case Command::kJobCancel:
      return RunJobCancel(session);
    case Command::kRecordGet:
      return RunRecordGet(session);
    case Command::kArtifactGet:
      return RunArtifactGet(session);
  }
  return absl::InternalError("no such command");
}

int Main(int argc, char** argv) {
  const absl::StatusOr<ParsedLine> parsed = ParseCommandLine(argc, argv);
  if (!parsed.ok()) {
    Output(AsksForJson(argc, argv), stdout, stderr).Error(parsed.status());
    return ExitCodeOf(parsed.status());
  }
  if (parsed->help.has_value()) {
    std::fputs(parsed->help->text.c_str(), stdout);
    return kDone;
  }
  // Made here, since threads inherit which signals it takes; the session ends where it began, since
  // its children end with the thread that started them.
  Interrupt interrupt;
  absl::Status status;
  compiler::OnDeepStack([&] {
    Output output(parsed->options.json, stdout, stderr);
    Session session(parsed->options, &output, &interrupt);
    status = RunCommand(session);
    if (!status.ok()) output.Error(status);
    interrupt.SetCleanup(nullptr);
  });
  return ExitCodeOf(status);
}

}  // namespace
}  // namespace kiln::cli

int main(int argc, char** argv) {
  // `kiln run` compiles the reference in a child, and this binary is that child's supervisor.
  if (argc > 1 && strcmp(argv[1], kiln::worker::kSuperviseFlag) == 0)
    return kiln::worker::RunSupervisor(argc, argv);
  return kiln::cli::Main(argc, argv);
}
