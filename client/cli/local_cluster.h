// SPDX-License-Identifier: Apache-2.0
// A server and a worker of this command's own, for --local: child processes in groups of their own
// (a terminal's Ctrl-C is this command's business), on a Unix socket in a temporary folder. Stopped
// by the destructor, and by the kernel if this process dies.
#pragma once

#include <sys/types.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace kiln::cli {

class LocalCluster {
 public:
  // `database` empty: a temporary one. The server takes jobs and the worker has registered when
  // this returns. FAILED_PRECONDITION with the child's own words if it refuses; UNAVAILABLE if it
  // cannot be started.
  static absl::StatusOr<std::unique_ptr<LocalCluster>> Start(const std::string& database,
                                                             bool with_worker);
  ~LocalCluster();
  LocalCluster(const LocalCluster&) = delete;
  LocalCluster& operator=(const LocalCluster&) = delete;

  const std::string& address() const { return address_; }
  // Ends the children, the worker first, and removes the folder. Once.
  void Stop();

 private:
  struct Child {
    std::string name;
    pid_t pid = 0;
    int output = -1;  // its stdout
    std::string log;  // file with its stderr
  };

  LocalCluster() = default;
  absl::Status MakeFolder();
  // Starts a program that lies beside this one.
  absl::Status StartChild(const std::string& name, const std::vector<std::string>& arguments);
  // Waits for the line that begins so; FAILED_PRECONDITION with the end of its log if the child
  // ends instead.
  absl::Status AwaitReady(Child* child, const std::string& prefix, absl::Duration limit);

  std::string folder_, address_;
  int lock_ = -1;  // on the folder, for as long as it has an owner
  std::vector<Child> children_;
};

}  // namespace kiln::cli
