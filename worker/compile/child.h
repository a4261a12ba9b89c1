// SPDX-License-Identifier: Apache-2.0
// A child process and all that it starts, under a supervisor of its own (supervisor.h): compilers
// and bench children run like this. When this object, or this whole process, goes away, the child
// and every descendant are killed and reaped, compilers' own children included. One thread at a
// time per Child, except Kill.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "worker/compile/cancel.h"

namespace kiln::worker {

// Whether ChildOptions::memory_bytes bounds a child's address space. Not where a sanitizer's shadow
// memory takes terabytes of it: there the supervisor watches the resident set.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kLimitsAddressSpace = false;
#else
inline constexpr bool kLimitsAddressSpace = true;
#endif

struct ChildOptions {
  std::string supervisor;            // a program that answers --supervise: the worker's own binary
  std::vector<std::string> command;  // searched in PATH if the first has no slash
  std::string directory;             // to run in; empty: this one's
  std::string log;     // file that takes its stdout (without `pipes`) and stderr; empty: discarded
  bool pipes = false;  // its stdin and stdout are input() and output()
  std::string temp_root;  // that the supervisor removes if this process dies; empty: none
  absl::Duration limit = absl::InfiniteDuration();  // wall clock, for the child
  int64_t memory_bytes = 0;                         // per process; 0: no limit
  int64_t cpu_seconds = 0;                          // per process; 0: no limit
  int64_t file_bytes = 0;                           // of any file it writes; 0: no limit
  bool isolated = false;                            // without a network, where the kernel lets us
};

// How a child ended.
struct ChildEnd {
  enum Kind {
    kExited,     // `code`: its exit status
    kSignalled,  // `code`: the signal
    kTimedOut,   // killed at `limit`
    kKilled,     // by Kill, a cancel or the destructor
    kLost,       // the supervisor itself died, or never came up: see `text`
  };
  Kind kind = kLost;
  int code = 0;
  int64_t peak_bytes = 0;  // largest resident set of a process of it
  std::string text;        // for kLost
  bool ok() const { return kind == kExited && code == 0; }
};
std::string Print(
    const ChildEnd& end);  // "exited with 1", "killed by signal 11 (Segmentation fault)", ...

class Child {
 public:
  // UNAVAILABLE if no process can be made; NOT_FOUND if the supervisor's binary cannot be run. That
  // `command` itself cannot be run shows as exit status 127 with the reason in the log.
  static absl::StatusOr<std::unique_ptr<Child>> Start(const ChildOptions& options);
  ~Child();
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  int input() const { return input_; }    // write here
  int output() const { return output_; }  // read here; non-blocking
  pid_t pid() const {
    return pid_;
  }  // of the child itself, and of its process group; 0 if it never ran

  // Waits until the child and all its descendants are gone; `cancel` (may be null) and the deadline
  // kill them.
  ChildEnd Wait(const CancelToken* cancel, absl::Time deadline = absl::InfiniteFuture());
  // Kills them all and waits for that.
  ChildEnd Kill();

 private:
  Child() = default;
  bool ReadLine(std::string* line, absl::Time deadline, const CancelToken* cancel);
  void Finish(ChildEnd end);

  pid_t supervisor_ = 0, pid_ = 0;
  int control_ = -1, input_ = -1, output_ = -1;
  bool asked_to_die_ = false;
  std::string buffered_;
  bool ended_ = false;
  ChildEnd end_;
};

}  // namespace kiln::worker
