// SPDX-License-Identifier: Apache-2.0
#include "worker/worker_main.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "proto/contract/error.h"
#include "worker/agent.h"
#include "worker/device/host_probe.h"
#include "worker/entry.h"
#include "worker/log.h"
#include "worker/options.h"

namespace kiln::worker {
namespace {

// A compilation and its output, and some reference sets, have to fit.
constexpr int64_t kFreeBytes = int64_t{256} << 20;

int ExitCodeOf(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kOk:
      return 0;
    case absl::StatusCode::kInvalidArgument:
      return 2;
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kDeadlineExceeded:
      return 4;
    case absl::StatusCode::kFailedPrecondition:
    case absl::StatusCode::kResourceExhausted:
    case absl::StatusCode::kPermissionDenied:
    case absl::StatusCode::kUnimplemented:
      return 6;
    default:
      return 1;
  }
}

int Report(const absl::Status& status) {
  if (status.ok()) return 0;
  const std::string reason = GetErrorInfo(status).reason;
  fprintf(stderr, "kiln: %s: %s\n",
          reason.empty() ? absl::StatusCodeToString(status.code()).c_str() : reason.c_str(),
          std::string(status.message()).c_str());
  return ExitCodeOf(status);
}

absl::StatusOr<DeviceFingerprint> Probe(const Options& options) {
  if (options.device == "cpu") return ProbeHost(options.threads);
  if (absl::StartsWith(options.device, "cuda:") || absl::StartsWith(options.device, "sim:")) {
    return MakeError(
        absl::StatusCode::kUnimplemented,
        absl::StrCat("device ", options.device,
                     ": this build drives no GPU and has no simulator; allowed: cpu"),
        {"DEVICE_NOT_BUILT", {{"field", "device"}, {"value", options.device}, {"allowed", "cpu"}}});
  }
  return InvalidField("UNKNOWN_DEVICE", "device", options.device, "no device",
                      "cpu, cuda:N or sim:ARCH:PRODUCT");
}

// Drains the agent at the first signal and ends the process at the second.
class StopSignals {
 public:
  StopSignals() {
    sigemptyset(&set_);
    sigaddset(&set_, SIGTERM), sigaddset(&set_, SIGINT), sigaddset(&set_, SIGUSR2);
    pthread_sigmask(SIG_BLOCK, &set_, nullptr);  // before any thread is started: all inherit it
  }
  void Watch(Agent* agent) {
    thread_ = std::thread([this, agent] {
      for (int signal = 0, stops = 0; sigwait(&set_, &signal) == 0 && signal != SIGUSR2;) {
        if (++stops > 1) _exit(130);  // supervisors see the pipes close and end the children
        Log("stops: hands back what it has");
        agent->Drain();
      }
    });
  }
  ~StopSignals() {
    if (!thread_.joinable()) return;
    pthread_kill(thread_.native_handle(), SIGUSR2);
    thread_.join();
  }

 private:
  sigset_t set_;
  std::thread thread_;
};

absl::Status Serve(const Options& options, const Frontend& frontend) {
  StopSignals signals;
  KILN_ASSIGN_OR_RETURN(const DeviceFingerprint device, Probe(options));
  std::error_code error;
  const std::string binary = std::filesystem::read_symlink("/proc/self/exe", error).string();
  if (error) return absl::InternalError(absl::StrCat("cannot find this binary: ", error.message()));
  KILN_ASSIGN_OR_RETURN(const std::unique_ptr<TempRoot> root,
                        TempRoot::Make(options.temp_dir, kFreeBytes));
  CompilerOptions compiling{.supervisor = binary,
                            .compiler = options.compiler,
                            .cache_dir = options.cache_dir,
                            .cache_bytes = options.cache_bytes,
                            .limit = options.compile_limit,
                            .memory_bytes = options.compile_memory_bytes};
  KILN_ASSIGN_OR_RETURN(const std::unique_ptr<HostCompiler> compiler,
                        HostCompiler::Make(compiling, *root));
  JobTools tools{.device = device,
                 .frontend = &frontend,
                 .compiler = compiler.get(),
                 .temp_root = root.get(),
                 .binary = binary,
                 .run_limit = options.run_limit};
  tools.compile_at_once =
      options.compile_at_once > 0 ? options.compile_at_once : std::max(1, device.cores);
  Agent agent({.server = options.server}, tools);
  signals.Watch(&agent);
  Log(absl::StrCat(device.name, ", ", device.threads, " threads, ", compiler->identity(),
                   "; looks for the server at ", options.server));
  return agent.Run([&] {
    printf("kiln-worker ready: %s\n", DeviceId(device).c_str());
    fflush(stdout);
  });
}

}  // namespace

int WorkerMain(int argc, char** argv, const Frontend& frontend) {
  if (const std::optional<int> status = RunHiddenProcess(argc, argv)) return *status;
  const Parsed parsed = ParseOptions(argc, argv);
  if (parsed.exit) {
    fputs(parsed.text.c_str(), parsed.code == 0 ? stdout : stderr);
    return parsed.code;
  }
  return Report(Serve(parsed.options, frontend));
}

}  // namespace kiln::worker
