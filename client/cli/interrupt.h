// SPDX-License-Identifier: Apache-2.0
// Ctrl-C and SIGTERM. A command that can stop in order takes the token; any other ends at once,
// after the cleanup. A second signal always ends the process. One per process, made before any
// thread.
#pragma once

#include <functional>
#include <mutex>
#include <stop_token>
#include <thread>

namespace kiln::cli {

class Interrupt {
 public:
  Interrupt();  // blocks the signals in this thread and those it starts
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

  // From now on the first signal only stops this token.
  std::stop_token TakeToken();
  // Runs before a signal ends the process.
  void SetCleanup(std::function<void()> cleanup);

 private:
  void Listen();
  void EndProcess();

  std::mutex mutex_;
  std::stop_source source_;
  bool taken_ = false;
  std::function<void()> cleanup_;
  std::thread listener_;
};

}  // namespace kiln::cli
