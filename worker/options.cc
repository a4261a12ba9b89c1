// SPDX-License-Identifier: Apache-2.0
#include "worker/options.h"

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <sstream>

#include "worker/version.h"

namespace kiln::worker {
namespace {

constexpr int kUsage = 2;

std::string Environment(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "";
}

// $XDG_CACHE_HOME/kiln/artifacts, else ~/.cache/kiln/artifacts; none without a home.
std::string DefaultCache() {
  if (const std::string cache = Environment("XDG_CACHE_HOME"); !cache.empty())
    return cache + "/kiln/artifacts";
  if (const std::string home = Environment("HOME"); !home.empty())
    return home + "/.cache/kiln/artifacts";
  return "";
}

}  // namespace

Parsed ParseOptions(int argc, const char* const* argv) {
  Parsed parsed;
  Options& o = parsed.options;
  if (const std::string temp = Environment("TMPDIR"); !temp.empty()) o.temp_dir = temp;
  o.cache_dir = DefaultCache();
  double compile_timeout = absl::ToDoubleSeconds(o.compile_limit),
         run_timeout = absl::ToDoubleSeconds(o.run_limit);
  int64_t cache_mib = o.cache_bytes >> 20, compile_mib = o.compile_memory_bytes >> 20;
  bool no_cache = false;

  CLI::App app(
      "Kiln's worker: searches for the schedules that the server hands out, and measures them on "
      "its device.",
      "kiln-worker");
  app.set_version_flag("--version", std::string("kiln-worker ") + kVersion);
  app.add_option("--server", o.server, "HOST:PORT or unix:PATH")
      ->envname("KILN_SERVER")
      ->capture_default_str();
  app.add_option("--device", o.device, "cpu, cuda:N or sim:ARCH:PRODUCT")->capture_default_str();
  app.add_option("--threads", o.threads,
                 "threads that kernels run with; part of the device; 0: one per usable core")
      ->check(CLI::Range(0, 4096))
      ->capture_default_str();
  app.add_option("--compiler", o.compiler, "C++ compiler, g++ or clang++: a name or a path")
      ->envname("KILN_COMPILER")
      ->capture_default_str();
  app.add_option("--temp-dir", o.temp_dir, "where temporary files go (TMPDIR)")
      ->capture_default_str();
  app.add_option("--cache-dir", o.cache_dir,
                 "where compiled artifacts are kept for other jobs and workers")
      ->capture_default_str();
  app.add_flag("--no-cache", no_cache, "keep no compiled artifacts");
  app.add_option("--cache-mib", cache_mib, "size of that cache")
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str();
  app.add_option("--compile-timeout", compile_timeout, "seconds that one compilation may take")
      ->check(CLI::Range(0.1, 3600.0))
      ->capture_default_str();
  app.add_option("--compile-memory-mib", compile_mib, "memory that one compiler may use")
      ->check(CLI::Range(128, 1 << 20))
      ->capture_default_str();
  app.add_option("--compile-jobs", o.compile_at_once,
                 "compilers side by side; 0: one per usable core")
      ->check(CLI::Range(0, 4096))
      ->capture_default_str();
  app.add_option("--run-timeout", run_timeout, "seconds that one launch of a candidate may take")
      ->check(CLI::Range(0.1, 3600.0))
      ->capture_default_str();

  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    std::ostringstream out, err;
    const int code = app.exit(error, out, err);
    parsed.exit = true;
    parsed.code = code == 0 ? 0 : kUsage;
    parsed.text = code == 0
                      ? out.str()
                      : "kiln: USAGE: " + std::string(error.what()) + "; see kiln-worker --help\n";
    return parsed;
  }
  if (no_cache) o.cache_dir.clear();
  o.cache_bytes = cache_mib << 20;
  o.compile_memory_bytes = compile_mib << 20;
  o.compile_limit = absl::Seconds(compile_timeout);
  o.run_limit = absl::Seconds(run_timeout);
  return parsed;
}

}  // namespace kiln::worker
