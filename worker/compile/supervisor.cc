// SPDX-License-Identifier: Apache-2.0
// Runs single-threaded from exec to exit, so that fork is safe and everything between fork and exec
// may be plain code.
#include "worker/compile/supervisor.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <system_error>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"

namespace kiln::worker {
namespace {

struct Task {
  ChildOptions options;
  pid_t parent = 0;  // whoever started us; once it is gone nobody else cleans up
};

void Limit(decltype(RLIMIT_AS) which, int64_t value) {
  const rlimit limit{static_cast<rlim_t>(value), static_cast<rlim_t>(value)};
  setrlimit(which, &limit);
}

// A kernel under trial has no business on the network. Needs a privilege or user namespaces;
// without either the rest of the confinement still holds.
void LeaveNetwork() {
  if (unshare(CLONE_NEWNET) != 0) unshare(CLONE_NEWUSER | CLONE_NEWNET);
}

[[noreturn]] void ExecChild(const Task& task, pid_t supervisor) {
  const ChildOptions& options = task.options;
  setpgid(0, 0);
  // Second line of defence: should the supervisor be killed itself, at least the child dies with
  // it.
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  if (getppid() != supervisor) _exit(127);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  signal(SIGPIPE, SIG_DFL), signal(SIGINT, SIG_DFL), signal(SIGTERM, SIG_DFL);

  const std::string log = options.log.empty() ? "/dev/null" : options.log;
  const int out = open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
  if (out >= 0) {
    if (!options.pipes) dup2(out, 1);
    dup2(out, 2);
    if (out > 2) close(out);
  }
  close(kControlDescriptor);
  if (options.isolated) LeaveNetwork();
  Limit(RLIMIT_CORE, 0);
  if (kLimitsAddressSpace && options.memory_bytes > 0) Limit(RLIMIT_AS, options.memory_bytes);
  if (options.cpu_seconds > 0) Limit(RLIMIT_CPU, options.cpu_seconds);
  if (options.file_bytes > 0) Limit(RLIMIT_FSIZE, options.file_bytes);
  if (!options.directory.empty() && chdir(options.directory.c_str()) != 0) {
    dprintf(2, "cannot enter %s: %s\n", options.directory.c_str(), strerror(errno));
    _exit(127);
  }
  std::vector<char*> argv;
  for (const std::string& word : options.command) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  execvp(argv[0], argv.data());
  dprintf(2, "cannot run %s: %s\n", argv[0], strerror(errno));
  _exit(127);
}

struct ProcessFacts {
  int parent = 0;
  unsigned flags = 0;
};

// False if there is no such process.
bool ReadFacts(pid_t pid, ProcessFacts* facts) {
  FILE* stat = fopen(absl::StrCat("/proc/", pid, "/stat").c_str(), "re");
  if (stat == nullptr) return false;
  char line[512];
  const size_t size = fread(line, 1, sizeof line - 1, stat);
  fclose(stat);
  line[size] = 0;
  // The name may hold anything, parentheses too: the fields start after the last one.
  const char* rest = strrchr(line, ')');
  return rest != nullptr &&
         sscanf(rest + 1, " %*c %d %*d %*d %*d %*d %u", &facts->parent, &facts->flags) == 2;
}

// A process that is killed closes its end of the control socket before its children get another
// parent: from then on it is gone, though it is still the parent.
bool IsGone(pid_t parent) {
  constexpr unsigned kExiting = 4;  // PF_EXITING
  ProcessFacts facts;
  return getppid() != parent || (ReadFacts(parent, &facts) && (facts.flags & kExiting) != 0);
}

// Processes whose parent is this one. /proc/PID/task/TID/children is not in every kernel.
std::vector<pid_t> OwnChildren() {
  std::vector<pid_t> found;
  DIR* proc = opendir("/proc");
  if (proc == nullptr) return found;
  while (const dirent* entry = readdir(proc)) {
    int pid = 0;
    if (!absl::SimpleAtoi(entry->d_name, &pid)) continue;
    ProcessFacts facts;
    if (ReadFacts(pid, &facts) && facts.parent == getpid()) found.push_back(pid);
  }
  closedir(proc);
  return found;
}

// Kills and reaps until no descendant is left: those that left the group come to us when their
// parents die.
void EndDescendants(pid_t group, rusage* usage) {
  const absl::Time give_up = absl::Now() + absl::Seconds(4);
  while (absl::Now() < give_up) {
    kill(-group, SIGKILL);
    for (const pid_t pid : OwnChildren()) kill(pid, SIGKILL);
    while (true) {
      rusage one{};
      const pid_t got = wait4(-1, nullptr, WNOHANG, &one);
      if (got < 0 && errno == ECHILD) return;
      if (got <= 0) break;
      usage->ru_maxrss = std::max(usage->ru_maxrss, one.ru_maxrss);
    }
    poll(nullptr, 0, 2);
  }
}

int64_t ResidentBytes(pid_t pid) {
  FILE* statm = fopen(absl::StrCat("/proc/", pid, "/statm").c_str(), "re");
  if (statm == nullptr) return 0;
  long total = 0, resident = 0;
  const int fields = fscanf(statm, "%ld %ld", &total, &resident);
  fclose(statm);
  return fields == 2 ? resident * sysconf(_SC_PAGESIZE) : 0;
}

// Waits for the first of: the child's end, the control socket's, the time limit.
ChildEnd Watch(const Task& task, pid_t child, int signals, rusage* usage) {
  const absl::Time deadline = absl::Now() + task.options.limit;
  const bool watch_memory = !kLimitsAddressSpace && task.options.memory_bytes > 0;
  ChildEnd end;
  while (true) {
    int64_t wait = -1;
    if (task.options.limit != absl::InfiniteDuration()) {
      wait = std::max<int64_t>(0, absl::ToInt64Milliseconds(deadline - absl::Now()) + 1);
    }
    if (watch_memory) wait = wait < 0 ? 50 : std::min<int64_t>(wait, 50);
    pollfd waits[2] = {{kControlDescriptor, POLLIN, 0}, {signals, POLLIN, 0}};
    poll(waits, 2, static_cast<int>(std::min<int64_t>(wait, 1 << 30)));
    signalfd_siginfo ignored;
    while (read(signals, &ignored, sizeof ignored) > 0) {
    }
    while (true) {
      int status = 0;
      rusage one{};
      const pid_t got = wait4(-1, &status, WNOHANG, &one);
      if (got <= 0) break;
      usage->ru_maxrss = std::max(usage->ru_maxrss, one.ru_maxrss);
      if (got != child) continue;
      end.kind = WIFSIGNALED(status) ? ChildEnd::kSignalled : ChildEnd::kExited;
      end.code = WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status);
      return end;
    }
    if (waits[0].revents != 0) {
      end.kind = ChildEnd::kKilled;
      return end;
    }
    if (absl::Now() >= deadline) {
      end.kind = ChildEnd::kTimedOut;
      return end;
    }
    if (watch_memory && ResidentBytes(child) > task.options.memory_bytes) {
      usage->ru_maxrss = std::max<long>(usage->ru_maxrss, ResidentBytes(child) / 1024);
      end.kind = ChildEnd::kSignalled, end.code = SIGKILL;
      return end;
    }
  }
}

// Fields "NAME=VALUE" up to "--", then the child's command.
bool ParseTask(int argc, char** argv, Task* task) {
  ChildOptions& options = task->options;
  int next = 2;
  for (; next < argc && strcmp(argv[next], "--") != 0; ++next) {
    const std::pair<std::string, std::string> field =
        absl::StrSplit(argv[next], absl::MaxSplits('=', 1));
    int64_t number = 0;
    const bool numeric = absl::SimpleAtoi(field.second, &number);
    if (field.first == "directory")
      options.directory = field.second;
    else if (field.first == "log")
      options.log = field.second;
    else if (field.first == "temp_root")
      options.temp_root = field.second;
    else if (!numeric)
      return false;
    else if (field.first == "parent")
      task->parent = static_cast<pid_t>(number);
    else if (field.first == "pipes")
      options.pipes = number != 0;
    else if (field.first == "isolated")
      options.isolated = number != 0;
    else if (field.first == "limit_ms")
      options.limit = absl::Milliseconds(number);
    else if (field.first == "memory_bytes")
      options.memory_bytes = number;
    else if (field.first == "cpu_seconds")
      options.cpu_seconds = number;
    else if (field.first == "file_bytes")
      options.file_bytes = number;
    else
      return false;
  }
  for (++next; next < argc; ++next) options.command.push_back(argv[next]);
  return !options.command.empty();
}

}  // namespace

std::vector<std::string> SupervisorCommand(const ChildOptions& options) {
  std::vector<std::string> words = {options.supervisor, kSuperviseFlag,
                                    absl::StrCat("parent=", getpid())};
  const auto add = [&words](absl::string_view name, const std::string& value) {
    if (!value.empty()) words.push_back(absl::StrCat(name, "=", value));
  };
  const auto add_number = [&words](absl::string_view name, int64_t value) {
    if (value > 0) words.push_back(absl::StrCat(name, "=", value));
  };
  add("directory", options.directory);
  add("log", options.log);
  add("temp_root", options.temp_root);
  add_number("pipes", options.pipes);
  add_number("isolated", options.isolated);
  if (options.limit != absl::InfiniteDuration())
    add_number("limit_ms", absl::ToInt64Milliseconds(options.limit));
  add_number("memory_bytes", options.memory_bytes);
  add_number("cpu_seconds", options.cpu_seconds);
  add_number("file_bytes", options.file_bytes);
  words.push_back("--");
  words.insert(words.end(), options.command.begin(), options.command.end());
  return words;
}

int RunSupervisor(int argc, char** argv) {
  Task task;
  if (!ParseTask(argc, argv, &task)) return 2;
  // A session of its own: an interrupt typed at the worker's terminal is the worker's to handle.
  setsid();
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  syscall(SYS_close_range, kControlDescriptor + 1, ~0U, 0);
  fcntl(kControlDescriptor, F_SETFD, FD_CLOEXEC);
  signal(SIGPIPE, SIG_IGN), signal(SIGINT, SIG_IGN), signal(SIGTERM, SIG_IGN),
      signal(SIGHUP, SIG_IGN);
  sigset_t chld;
  sigemptyset(&chld), sigaddset(&chld, SIGCHLD);
  sigprocmask(SIG_BLOCK, &chld, nullptr);
  const int signals = signalfd(-1, &chld, SFD_CLOEXEC | SFD_NONBLOCK);

  const pid_t self = getpid();
  const pid_t child = fork();
  if (child == 0) ExecChild(task, self);
  if (child < 0) return 1;
  setpgid(child, child);
  if (task.options.pipes) close(0), close(1);  // the child's ends are the child's alone
  dprintf(kControlDescriptor, "pid %d\n", static_cast<int>(child));

  rusage usage{};
  const ChildEnd end = Watch(task, child, signals, &usage);
  EndDescendants(child, &usage);
  if (!task.options.temp_root.empty() && IsGone(task.parent)) {
    std::error_code ignored;
    std::filesystem::remove_all(task.options.temp_root, ignored);
  }
  dprintf(kControlDescriptor, "end %d %d %lld\n", static_cast<int>(end.kind), end.code,
          static_cast<long long>(usage.ru_maxrss) * 1024);
  return 0;
}

}  // namespace kiln::worker
