// SPDX-License-Identifier: Apache-2.0
// kiln-server: options, store, server; then waits for a signal and stops in order.
// Exit codes (CLI.md): 0 stopped · 2 usage · 4 the address cannot be had · 6 the database is
// refused · 1 anything else.
#include <signal.h>

#include <cstdio>
#include <memory>

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

  absl::StatusOr<std::unique_ptr<db::Store>> store =
      db::OpenSqliteStore({options.db, options.listen, options.upgrade, options.allow_network_fs});
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
