// SPDX-License-Identifier: Apache-2.0
// kiln-server: options, store, server; then waits for a signal and stops in order. Or a merge or an
// export of the database, and no server.
// Exit codes (CLI.md): 0 stopped · 2 usage · 4 the address cannot be had · 6 the database is
// refused · 1 anything else.
#include <signal.h>

#include <cstdio>
#include <memory>

#include "db/merge.h"
#include "db/sqlite_store.h"
#include "proto/contract/error.h"
#include "server/log.h"
#include "server/options.h"
#include "server/server.h"
#include "worker/compiler/families/family.h"

namespace kiln::server {
namespace {

int Fail(const absl::Status& status, int code) {
  const ErrorInfo info = GetErrorInfo(status);
  const std::string reason =
      info.reason.empty() ? absl::StatusCodeToString(status.code()) : info.reason;
  std::fprintf(stderr, "kiln: %s: %s\n", reason.c_str(), std::string(status.message()).c_str());
  return code;
}

absl::Status Match(const Workload& workload, const DeviceFingerprint& device,
                   std::map<std::string, std::string>* refused) {
  return compiler::MatchFamily(workload, device, refused).status();
}

int MergeInto(const db::SqliteOptions& into, const Options& options) {
  const absl::StatusOr<db::MergeReport> report =
      db::MergeDatabase(into, options.merge, options.dry_run);
  if (!report.ok()) return Fail(report.status(), 6);
  for (const db::MergeConflict& conflict : report->conflicts) {
    std::printf("%s: %s, %s there: %s (%s)\n", conflict.key.c_str(),
                conflict.here.empty() ? "withdrawn" : conflict.here.c_str(),
                conflict.there.empty() ? "withdrawn" : conflict.there.c_str(),
                conflict.replaced ? "replaced" : "kept", conflict.why.c_str());
  }
  std::printf("%s%lld records and %lld artifacts, %lld records known, %lld keys new, %zu in both\n",
              options.dry_run ? "would merge " : "merged ", static_cast<long long>(report->records),
              static_cast<long long>(report->artifacts), static_cast<long long>(report->known),
              static_cast<long long>(report->published), report->conflicts.size());
  if (report->damaged > 0) {
    std::printf("%lld damaged rows were left out\n", static_cast<long long>(report->damaged));
  }
  return 0;
}

int Run(int argc, char** argv) {
  const Parsed parsed = ParseOptions(argc, argv);
  if (parsed.exit) {
    std::fputs(parsed.text.c_str(), parsed.exit_code == 0 ? stdout : stderr);
    return parsed.exit_code;
  }
  const Options& options = parsed.options;
  SetLogLevel(options.log_level == "error"     ? Level::kError
              : options.log_level == "warning" ? Level::kWarning
                                               : Level::kInfo);

  // Blocked before any thread starts, so that they all inherit it and the signal waits here.
  sigset_t stop;
  sigemptyset(&stop);
  sigaddset(&stop, SIGTERM);
  sigaddset(&stop, SIGINT);
  pthread_sigmask(SIG_BLOCK, &stop, nullptr);
  signal(SIGPIPE, SIG_IGN);

  const db::SqliteOptions database{.path = options.db,
                                   .owner = options.listen,
                                   .upgrade = options.upgrade,
                                   .allow_network_fs = options.allow_network_fs,
                                   .read_only = options.read_only};
  if (!options.merge.empty()) return MergeInto(database, options);
  if (!options.export_to.empty()) {
    const absl::Status copied = db::ExportDatabase(database, options.export_to);
    return copied.ok() ? 0 : Fail(copied, 6);
  }
  absl::StatusOr<std::unique_ptr<db::Store>> store = db::OpenSqliteStore(database);
  if (!store.ok()) return Fail(store.status(), 6);
  const SystemClock clock;
  absl::StatusOr<std::unique_ptr<Server>> server =
      Server::Start(options, store->get(), &clock, Match);
  if (!server.ok()) {
    const bool address = GetErrorInfo(server.status()).reason == "ADDRESS_IN_USE";
    return Fail(server.status(), address ? 4 : 6);
  }
  std::printf("kiln-server ready on %s\n", (*server)->address().c_str());
  std::fflush(stdout);
  if ((*server)->metrics_port() != 0) {
    Log(Level::kInfo,
        absl::StrCat("metrics on port ", (*server)->metrics_port(), ", path /metrics"));
  }

  int signal_number = 0;
  sigwait(&stop, &signal_number);
  Log(Level::kInfo, "stopping: held calls are answered, jobs are kept");
  (*server)->Stop();
  server->reset();
  store->reset();
  return 0;
}

}  // namespace
}  // namespace kiln::server

int main(int argc, char** argv) { return kiln::server::Run(argc, argv); }
