// SPDX-License-Identifier: Apache-2.0
#include "client/cli/local_cluster.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "proto/contract/error.h"

namespace kiln::cli {
namespace {

constexpr absl::Duration kReadyLimit = absl::Seconds(60);  // the worker tries its compiler first
constexpr absl::Duration kStopLimit = absl::Seconds(10);
constexpr size_t kLogTail = 2000;

absl::Status CannotStart(const std::string& name, const std::string& why) {
  return MakeError(absl::StatusCode::kUnavailable,
                   absl::StrCat("--local: ", name, " cannot be started: ", why),
                   {"LOCAL_NOT_STARTED", {{"program", name}}});
}

constexpr char kFolderPrefix[] = "kiln-local-";
constexpr absl::Duration kSettled = absl::Minutes(1);  // by then a new folder has its lock

// The owner of a folder holds a lock on it for as long as it lives: that tells across process
// namespaces too (containers that share /tmp), where a process id does not. Negative: not locked.
int LockFolder(const std::string& path) {
  const int folder = open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (folder < 0 || flock(folder, LOCK_EX | LOCK_NB) == 0) return folder;
  close(folder);
  return -1;
}

// Removes this user's folders whose owners were killed.
void SweepFolders(const std::filesystem::path& directory) {
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(directory, error)) {
    if (!absl::StartsWith(entry.path().filename().string(), kFolderPrefix)) continue;
    struct stat facts;
    if (lstat(entry.path().c_str(), &facts) != 0 || !S_ISDIR(facts.st_mode) ||
        facts.st_uid != geteuid() || absl::FromTimeT(facts.st_mtime) > absl::Now() - kSettled)
      continue;
    const int lock = LockFolder(entry.path());
    if (lock < 0) continue;
    std::filesystem::remove_all(entry.path(), error);
    close(lock);
  }
}

std::string Beside(const std::string& name) {
  std::error_code error;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
  return (self.parent_path() / name).string();
}

std::string TailOf(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string text(std::istreambuf_iterator<char>(file), {});
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text.size() <= kLogTail ? text : text.substr(text.size() - kLogTail);
}

// In the child, between fork and exec: only what a forked child of a threaded process may do.
[[noreturn]] void RunProgram(char* const* argv, int output, int log, pid_t parent) {
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (getppid() != parent) _exit(127);  // it died before the line above
  const int nothing = open("/dev/null", O_RDONLY);
  dup2(nothing, 0);
  dup2(output, 1);
  dup2(log, 2);
  execv(argv[0], argv);
  constexpr char kFailed[] = "it cannot be executed\n";
  (void)!write(2, kFailed, sizeof(kFailed) - 1);
  _exit(127);
}

// True once the child is gone.
bool AwaitEnd(pid_t pid, absl::Duration limit) {
  const absl::Time deadline = absl::Now() + limit;
  while (waitpid(pid, nullptr, WNOHANG) == 0) {
    if (absl::Now() >= deadline) return false;
    absl::SleepFor(absl::Milliseconds(5));
  }
  return true;
}

}  // namespace

absl::StatusOr<std::unique_ptr<LocalCluster>> LocalCluster::Start(const std::string& database,
                                                                  bool with_worker) {
  std::unique_ptr<LocalCluster> cluster(new LocalCluster);
  KILN_RETURN_IF_ERROR(cluster->MakeFolder());
  const std::string file = database.empty() ? cluster->folder_ + "/kiln.db" : database;
  KILN_RETURN_IF_ERROR(
      cluster->StartChild("kiln-server", {"--db", file, "--listen", cluster->address_}));
  KILN_RETURN_IF_ERROR(
      cluster->AwaitReady(&cluster->children_.back(), "kiln-server ready on ", kReadyLimit));
  if (!with_worker) return cluster;
  KILN_RETURN_IF_ERROR(
      cluster->StartChild("kiln-worker", {"--server", cluster->address_, "--device", "cpu"}));
  KILN_RETURN_IF_ERROR(
      cluster->AwaitReady(&cluster->children_.back(), "kiln-worker ready: ", kReadyLimit));
  return cluster;
}

LocalCluster::~LocalCluster() { Stop(); }

void LocalCluster::Stop() {
  for (auto child = children_.rbegin(); child != children_.rend(); ++child) {
    kill(child->pid, SIGTERM);
    if (!AwaitEnd(child->pid, kStopLimit)) {
      kill(child->pid, SIGKILL);
      waitpid(child->pid, nullptr, 0);
    }
    close(child->output);
  }
  children_.clear();
  std::error_code error;
  if (!folder_.empty()) std::filesystem::remove_all(folder_, error);
  folder_.clear();
  if (lock_ >= 0) close(lock_);
  lock_ = -1;
}

absl::Status LocalCluster::MakeFolder() {
  std::error_code error;
  const std::filesystem::path directory = std::filesystem::temp_directory_path(error);
  if (!error) SweepFolders(directory);
  std::string pattern = (directory / absl::StrCat(kFolderPrefix, "XXXXXX")).string();
  if (error || mkdtemp(pattern.data()) == nullptr) {
    return CannotStart("kiln-server", absl::StrCat("no temporary folder: ",
                                                   error ? error.message() : strerror(errno)));
  }
  folder_ = pattern;
  lock_ = LockFolder(folder_);
  // Without one, another command would take the folder for abandoned.
  if (lock_ < 0)
    return CannotStart("kiln-server", absl::StrCat("no lock on ", folder_, ": ", strerror(errno)));
  address_ = absl::StrCat("unix:", folder_, "/socket");
  return absl::OkStatus();
}

absl::Status LocalCluster::StartChild(const std::string& name,
                                      const std::vector<std::string>& arguments) {
  const std::string program = Beside(name);
  if (access(program.c_str(), X_OK) != 0)
    return CannotStart(name, absl::StrCat(program, ": ", strerror(errno)));
  Child child;
  child.name = name;
  child.log = absl::StrCat(folder_, "/", name, ".log");
  int output[2];
  if (pipe2(output, O_CLOEXEC) != 0) return CannotStart(name, strerror(errno));
  const int log = open(child.log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  std::vector<char*> argv = {const_cast<char*>(program.c_str())};
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  const pid_t parent = getpid();
  child.pid = fork();
  if (child.pid == 0) RunProgram(argv.data(), output[1], log, parent);
  const int error = errno;
  close(output[1]);
  if (log >= 0) close(log);
  if (child.pid < 0) {
    close(output[0]);
    return CannotStart(name, strerror(error));
  }
  child.output = output[0];
  children_.push_back(child);
  return absl::OkStatus();
}

absl::Status LocalCluster::AwaitReady(Child* child, const std::string& prefix,
                                      absl::Duration limit) {
  const absl::Time deadline = absl::Now() + limit;
  std::string said;
  while (absl::Now() < deadline) {
    pollfd waiting{child->output, POLLIN, 0};
    if (poll(&waiting, 1, 100) <= 0) continue;
    char buffer[512];
    const ssize_t size = read(child->output, buffer, sizeof(buffer));
    if (size <= 0) {  // it has ended
      return MakeError(absl::StatusCode::kFailedPrecondition,
                       absl::StrCat("--local: ", child->name, ": ", TailOf(child->log)),
                       {"LOCAL_REFUSED", {{"program", child->name}}});
    }
    said.append(buffer, static_cast<size_t>(size));
    const size_t at = said.find(prefix);
    if (at != std::string::npos && said.find('\n', at) != std::string::npos)
      return absl::OkStatus();
  }
  return CannotStart(child->name, absl::StrCat("not ready within ", absl::FormatDuration(limit)));
}

}  // namespace kiln::cli
