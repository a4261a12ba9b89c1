// SPDX-License-Identifier: Apache-2.0
#include "client/cli/interrupt.h"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <utility>

#include "client/cli/exit_code.h"

namespace kiln::cli {
namespace {

constexpr int kWakeSignal = SIGUSR2;  // from the destructor: no more listening

sigset_t Signals() {
  sigset_t set;
  sigemptyset(&set);
  for (const int number : {SIGINT, SIGTERM, kWakeSignal}) sigaddset(&set, number);
  return set;
}

}  // namespace

Interrupt::Interrupt() {
  const sigset_t set = Signals();
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  listener_ = std::thread([this] { Listen(); });
}

Interrupt::~Interrupt() {
  pthread_kill(listener_.native_handle(), kWakeSignal);
  listener_.join();
}

std::stop_token Interrupt::TakeToken() {
  const std::lock_guard<std::mutex> lock(mutex_);
  taken_ = true;
  return source_.get_token();
}

void Interrupt::SetCleanup(std::function<void()> cleanup) {
  const std::lock_guard<std::mutex> lock(mutex_);
  cleanup_ = std::move(cleanup);
}

void Interrupt::Listen() {
  const sigset_t set = Signals();
  while (true) {
    int number = 0;
    if (sigwait(&set, &number) != 0) continue;
    if (number == kWakeSignal) return;
    bool stop = false;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      stop = taken_ && !source_.stop_requested();
    }
    if (stop) {
      source_.request_stop();
    } else {
      EndProcess();
    }
  }
}

void Interrupt::EndProcess() {
  std::function<void()> cleanup;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    cleanup = std::move(cleanup_);
  }
  if (cleanup) cleanup();
  _exit(kInterrupted);  // other threads may be anywhere: no destructors
}

}  // namespace kiln::cli
