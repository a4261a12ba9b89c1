// SPDX-License-Identifier: Apache-2.0
#include "server/options.h"

#include <CLI/CLI.hpp>
#include <sstream>

namespace kiln::server {
namespace {

constexpr int kUsage = 2;

}  // namespace

Parsed ParseOptions(int argc, const char* const* argv) {
  Parsed parsed;
  Options& o = parsed.options;
  double heartbeat = 2, lease_expiry = 10, grace = 15, drain = 5;
  int64_t cache_mib = o.cache_bytes >> 20, rpc_mib = o.rpc_memory_bytes >> 20;
  bool no_upgrade = false;

  CLI::App app(
      "Kiln's server: answers lookups from its database, and gives the searches to workers.",
      "kiln-server");
  app.set_version_flag("--version", std::string("kiln-server ") + KILN_VERSION);
  app.add_option("--db", o.db, "the database file; created if it is not there")
      ->required()
      ->envname("KILN_DB");
  app.add_option("--listen", o.listen, "HOST:PORT, HOST:0 (any free port) or unix:PATH")
      ->envname("KILN_LISTEN")
      ->capture_default_str();
  app.add_option("--metrics-listen", o.metrics_listen,
                 "HOST:PORT of the Prometheus text endpoint; none if absent");
  app.add_option("--heartbeat", heartbeat, "seconds between two heartbeats of a worker")
      ->check(CLI::Range(0.05, 60.0))
      ->capture_default_str();
  app.add_option("--lease-expiry", lease_expiry,
                 "seconds without a heartbeat after which a lease ends")
      ->check(CLI::Range(0.1, 3600.0))
      ->capture_default_str();
  app.add_option("--worker-grace", grace,
                 "seconds after the start in which workers are awaited back")
      ->check(CLI::Range(0.0, 3600.0))
      ->capture_default_str();
  app.add_option("--drain", drain, "seconds that calls in flight have at the stop")
      ->check(CLI::Range(0.0, 600.0))
      ->capture_default_str();
  app.add_option("--max-queue", o.jobs.max_jobs, "live jobs")
      ->check(CLI::Range(1, 10'000'000))
      ->capture_default_str();
  app.add_option("--max-queue-per-client", o.jobs.max_jobs_per_client, "live jobs of one client")
      ->check(CLI::Range(1, 10'000'000))
      ->capture_default_str();
  app.add_option("--max-waiters", o.jobs.max_operations_per_job, "operations on one job")
      ->check(CLI::Range(1, 10'000'000))
      ->capture_default_str();
  app.add_option("--max-held-calls", o.max_held_calls, "open waits, watches and polls")
      ->check(CLI::Range(1, 10'000'000))
      ->capture_default_str();
  app.add_option("--trials", o.default_budget.trials, "a request's trials, where it does not say")
      ->check(CLI::Range(1, 1'000'000'000))
      ->capture_default_str();
  app.add_option("--seconds", o.default_budget.seconds,
                 "a request's seconds, where it does not say")
      ->check(CLI::Range(0.0, 1e6))
      ->capture_default_str();
  app.add_option("--wait-worker", o.default_budget.wait_worker_seconds,
                 "seconds that a job waits for a fitting worker, where it does not say")
      ->check(CLI::Range(0.0, 1e6))
      ->capture_default_str();
  app.add_option("--cache-mib", cache_mib, "memory for lookups")
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str();
  app.add_option("--rpc-memory-mib", rpc_mib, "memory for calls in flight")
      ->check(CLI::Range(64, 1 << 20))
      ->capture_default_str();
  app.add_option("--threads", o.threads, "that may wait for the database")
      ->check(CLI::Range(1, 256))
      ->capture_default_str();
  app.add_option("--log-level", o.log_level, "info, warning or error")
      ->check(CLI::IsMember({"info", "warning", "error"}))
      ->capture_default_str();
  app.add_flag("--allow-network-fs", o.allow_network_fs,
               "open a database on a network file system all the same");
  app.add_flag("--read-only", o.read_only,
               "answer lookups from a file that nobody writes: a shipped one, a read-only mount");
  auto* merge = app.add_option("--merge", o.merge,
                               "instead of serving: merge the records of this database into --db");
  app.add_flag("--dry-run", o.dry_run, "with --merge: report what it would do, and do nothing")
      ->needs(merge);
  app.add_option("--export", o.export_to,
                 "instead of serving: copy --db to this file, readable with --read-only anywhere")
      ->excludes(merge);
  app.add_flag("--no-upgrade", no_upgrade,
               "refuse an older database instead of migrating it (after a backup)");

  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    std::ostringstream out, err;
    const int code = app.exit(error, out, err);
    parsed.exit = true;
    parsed.exit_code = code == 0 ? 0 : kUsage;
    parsed.text = code == 0
                      ? out.str()
                      : "kiln: USAGE: " + std::string(error.what()) + "; see kiln-server --help\n";
    return parsed;
  }
  o.heartbeat = absl::Seconds(heartbeat);
  o.jobs.lease_expiry = absl::Seconds(lease_expiry);
  o.jobs.reconnect_grace = absl::Seconds(grace);
  o.worker_grace = absl::Seconds(grace);
  o.drain = absl::Seconds(drain);
  o.cache_bytes = cache_mib << 20;
  o.rpc_memory_bytes = rpc_mib << 20;
  o.upgrade = !no_upgrade;
  if (lease_expiry < 2 * heartbeat) {
    parsed = {o, true, kUsage, "kiln: USAGE: --lease-expiry must be at least twice --heartbeat\n"};
  }
  return parsed;
}

}  // namespace kiln::server
