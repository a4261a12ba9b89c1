// SPDX-License-Identifier: Apache-2.0
#include "worker/compile/child.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "worker/compile/supervisor.h"

extern char** environ;

namespace kiln::worker {
namespace {

// A supervisor that does not answer within this time is stuck (stopped, or swapped out): it is
// killed as well.
constexpr absl::Duration kSupervisorPatience = absl::Seconds(5);

void Close(int* descriptor) {
  if (*descriptor >= 0) close(*descriptor);
  *descriptor = -1;
}

// Out of the way of 0..3, which the spawn below assigns in the child.
int Lifted(int descriptor) {
  const int lifted = fcntl(descriptor, F_DUPFD_CLOEXEC, 16);
  close(descriptor);
  return lifted;
}

struct Ends {
  int ours = -1, theirs = -1;
  ~Ends() { Close(&ours), Close(&theirs); }
};

bool MakeControl(Ends* ends) {
  int pair[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0) return false;
  ends->ours = Lifted(pair[0]), ends->theirs = Lifted(pair[1]);
  return ends->ours >= 0 && ends->theirs >= 0;
}

bool MakePipe(Ends* ends, bool we_write) {
  int pair[2];
  if (pipe2(pair, O_CLOEXEC) != 0) return false;
  ends->ours = Lifted(pair[we_write ? 1 : 0]), ends->theirs = Lifted(pair[we_write ? 0 : 1]);
  return ends->ours >= 0 && ends->theirs >= 0;
}

absl::Status NoProcess(absl::string_view what) {
  return absl::UnavailableError(
      absl::StrCat("cannot start a child process: ", what, ": ", strerror(errno)));
}

}  // namespace

std::string Print(const ChildEnd& end) {
  switch (end.kind) {
    case ChildEnd::kExited:
      return absl::StrCat("exited with ", end.code);
    case ChildEnd::kSignalled:
      return absl::StrCat("killed by signal ", end.code, " (", strsignal(end.code), ")");
    case ChildEnd::kTimedOut:
      return "killed at its time limit";
    case ChildEnd::kKilled:
      return "killed on request";
    case ChildEnd::kLost:
      break;
  }
  return absl::StrCat("lost: ", end.text);
}

absl::StatusOr<std::unique_ptr<Child>> Child::Start(const ChildOptions& options) {
  Ends control, input, output;
  if (!MakeControl(&control)) return NoProcess("socketpair");
  if (options.pipes && (!MakePipe(&input, true) || !MakePipe(&output, false)))
    return NoProcess("pipe");

  std::vector<std::string> words = SupervisorCommand(options);
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);

  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, control.theirs, kControlDescriptor);
  if (options.pipes) {
    posix_spawn_file_actions_adddup2(&actions, input.theirs, 0);
    posix_spawn_file_actions_adddup2(&actions, output.theirs, 1);
  } else {
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
  }
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t none, all;
  sigemptyset(&none), sigfillset(&all);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &all);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  pid_t pid = 0;
  const int error =
      posix_spawn(&pid, options.supervisor.c_str(), &actions, &attributes, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  if (error != 0) {
    const std::string text = absl::StrCat("cannot run ", options.supervisor, ": ", strerror(error));
    return error == EAGAIN || error == ENOMEM ? absl::UnavailableError(text)
                                              : absl::NotFoundError(text);
  }

  std::unique_ptr<Child> child(new Child);
  child->supervisor_ = pid;
  child->control_ = std::exchange(control.ours, -1);
  child->input_ = std::exchange(input.ours, -1);
  child->output_ = std::exchange(output.ours, -1);
  if (child->output_ >= 0) fcntl(child->output_, F_SETFL, O_NONBLOCK);
  Close(&control.theirs);
  std::string line;
  if (child->ReadLine(&line, absl::Now() + kSupervisorPatience, nullptr)) {
    const std::vector<std::string> fields = absl::StrSplit(line, ' ');
    if (fields.size() == 2 && fields[0] == "pid" && absl::SimpleAtoi(fields[1], &child->pid_))
      return child;
  }
  child->Kill();
  return absl::UnavailableError(
      absl::StrCat(options.supervisor, " does not answer to --supervise"));
}

Child::~Child() {
  Kill();
  Close(&input_), Close(&output_), Close(&control_);
}

bool Child::ReadLine(std::string* line, absl::Time deadline, const CancelToken* cancel) {
  while (true) {
    if (const size_t end = buffered_.find('\n'); end != std::string::npos) {
      *line = buffered_.substr(0, end);
      buffered_.erase(0, end + 1);
      return true;
    }
    const int64_t left = absl::ToInt64Milliseconds(deadline - absl::Now());
    if (left <= 0 && deadline != absl::InfiniteFuture()) return false;
    const int timeout = deadline == absl::InfiniteFuture()
                            ? -1
                            : static_cast<int>(std::min<int64_t>(left + 1, 1 << 30));
    pollfd waits[2] = {{control_, POLLIN, 0},
                       {cancel != nullptr ? cancel->descriptor() : -1, POLLIN, 0}};
    if (poll(waits, 2, timeout) < 0 && errno != EINTR) return false;
    if (waits[1].revents != 0) return false;
    if (waits[0].revents == 0) continue;
    char bytes[256];
    const ssize_t got = read(control_, bytes, sizeof bytes);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    buffered_.append(bytes, got);
  }
}

ChildEnd Child::Wait(const CancelToken* cancel, absl::Time deadline) {
  if (ended_) return end_;
  if (asked_to_die_) deadline = absl::Now() + kSupervisorPatience;
  std::string line;
  ChildEnd end;
  if (!ReadLine(&line, deadline, cancel)) {
    const bool unwanted = (cancel != nullptr && cancel->cancelled()) || absl::Now() >= deadline;
    if (!asked_to_die_ && unwanted) return Kill();
    end.text = asked_to_die_ ? "the supervisor did not answer in time" : "the supervisor died";
  } else {
    const std::vector<std::string> fields = absl::StrSplit(line, ' ');
    int kind = 0;
    if (fields.size() == 4 && fields[0] == "end" && absl::SimpleAtoi(fields[1], &kind) &&
        absl::SimpleAtoi(fields[2], &end.code) && absl::SimpleAtoi(fields[3], &end.peak_bytes)) {
      end.kind = static_cast<ChildEnd::Kind>(kind);
    } else {
      end.text = absl::StrCat("the supervisor says: ", line);
    }
  }
  Finish(std::move(end));
  return end_;
}

ChildEnd Child::Kill() {
  if (ended_) return end_;
  if (!asked_to_die_) {
    asked_to_die_ = true;
    shutdown(control_, SHUT_WR);
  }
  return Wait(nullptr);
}

void Child::Finish(ChildEnd end) {
  end_ = std::move(end);
  ended_ = true;
  if (end_.kind == ChildEnd::kLost) {
    // Without its supervisor nobody else ends the group.
    if (pid_ > 0) kill(-pid_, SIGKILL);
    kill(supervisor_, SIGKILL);
  }
  while (waitpid(supervisor_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

}  // namespace kiln::worker
